"""Where the agent may read and write.

Its workspace, and further directories that the policy opens.
"""

import os
from collections.abc import Generator
from contextlib import contextmanager

import msgspec

OURS = ".adjourn"


class OutOfBounds(Exception):
    """A path leads where the agent may not go."""


class PathBounds(msgspec.Struct, frozen=True, kw_only=True):
    """A workspace, and what else is open to the agent."""

    workspace: str
    directories: tuple[str, ...] = ()
    limit: int = 30_000  # how many characters of a result the model gets

    def path(self, given: str) -> str:
        """Return where a path really leads, or refuse it.

        Links are followed first: what counts is where they end.
        """
        if "\0" in given:
            raise OutOfBounds("a path cannot hold a zero byte")
        try:
            real = os.path.realpath(os.path.join(self.workspace, given))
        except OSError as error:  # somebody changes links on its way at this very moment
            raise OutOfBounds(f"{given}: {error.strerror}") from error
        self._require_inside(real, given)
        return real

    def plain(self, given: str) -> str:
        """Return where a path leads if there is no link on its way from the workspace."""
        return os.path.normpath(os.path.join(os.path.realpath(self.workspace), given))

    def _require_inside(self, real: str, given: str) -> None:
        roots = [os.path.realpath(root) for root in (self.workspace, *self.directories)]
        if not any(os.path.commonpath([root, real]) == root for root in roots):
            raise OutOfBounds(f"{given} is outside of the workspace")
        if OURS in real.split(os.sep):
            raise OutOfBounds(f"{given} belongs to adjourn")

    def shown(self, real: str) -> str:
        """Return a path as the model knows it."""
        root = os.path.realpath(self.workspace)
        return os.path.relpath(real, root) if os.path.commonpath([root, real]) == root else real

    @contextmanager
    def opened(self, given: str) -> Generator[int, None, None]:
        """Open a file for reading, and look once more where that led.

        A link may have been put there in between.
        """
        fd = os.open(self.path(given), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            self._require_inside(os.readlink(f"/proc/self/fd/{fd}"), given)
            yield fd
        finally:
            os.close(fd)
