"""A shell of an ordinary user: root may do what no agent of a person may."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.shell import Done, Shell
from tests.needs import missing, needs

UID = 61_234
_HERE = Path(__file__).resolve().parents[2]
_REVEAL = """
for each in $BINDS; do mkdir -p "$KEPT$each" && mount --bind "$each" "$KEPT$each" || exit 1; done
mount -t tmpfs -o mode=755 none "$HIDDEN" || exit 1
for each in $BINDS; do mkdir -p "$each" && mount --bind "$KEPT$each" "$each" || exit 1; done
echo ready
exec sleep infinity
"""


class OrdinaryShell(Shell):
    """A shell whose commands run without any right of root."""

    def __init__(self, place: Path) -> None:
        super().__init__(place)
        self.environment["HOME"] = str(place)
        self.user: list[str] = []
        self._enter: list[str] = []
        self._uid = os.getuid()
        if self._uid == 0:
            self._uid = UID
            self.user = [needs("setpriv"), f"--reuid={UID}", f"--regid={UID}", "--clear-groups"]
        self.me = f"uid:{self._uid}"
        self.give_files()

    def give_files(self) -> None:
        """Give the user what the test itself put into the directory."""
        if self._uid != os.getuid():
            for path in (self.place, *self.place.rglob("*")):
                os.chown(path, self._uid, self._uid, follow_symlinks=False)

    def script(self, text: str, *, name: str = "script.sh") -> str:
        """Put a shell script of the user's into the directory."""
        called = super().script(text, name=name)
        self.give_files()
        return called

    def agent(self, name: str) -> str:
        """Put one of the agents into the directory as the user's."""
        called = super().agent(name)
        self.give_files()
        return called

    def run(
        self,
        *words: str | bytes,
        expect: int | None = 0,
        env: Mapping[str, str] | None = None,
        cwd: Path | str | None = None,
        stdin: bytes | None = None,
    ) -> Done:
        """Run any program to its end as that user."""
        there = ["env", "-C", str(cwd or self.place)] if self._enter else []
        return super().run(
            *self._enter, *there, *self.user, *words, expect=expect, env=env, cwd=cwd, stdin=stdin
        )

    @contextmanager
    def reaching_python(self) -> Iterator[None]:
        """Let the user reach the Python of these tests, which may lie in root's home.

        In a mount namespace of its own.
        """
        hidden = _hidden_directory()
        if not self.user or hidden is None:
            yield
            return
        binds = [path for path in (sys.base_prefix, str(_HERE)) if path.startswith(f"{hidden}/")]
        with tempfile.TemporaryDirectory(prefix="kept-") as kept:
            variables = {
                **self.environment,
                "BINDS": " ".join(binds),
                "HIDDEN": hidden,
                "KEPT": kept,
            }
            words = [needs("unshare"), "-m", "sh", "-c", _REVEAL]
            with subprocess.Popen(words, env=variables, stdout=subprocess.PIPE) as holder:
                try:
                    if not holder.stdout or holder.stdout.readline() != b"ready\n":
                        missing("the right to mount")
                    self._enter = [needs("nsenter"), "-t", str(holder.pid), "-m"]
                    yield
                finally:
                    holder.kill()


def _hidden_directory() -> str | None:
    """Return the topmost directory above Python or the project that an ordinary user cannot enter."""
    above = [
        folder for path in (sys.base_prefix, str(_HERE)) for folder in reversed(Path(path).parents)
    ]
    return next((str(folder) for folder in above if not folder.stat().st_mode & 0o001), None)


@contextmanager
def ordinary_shell() -> Iterator[OrdinaryShell]:
    """Make a shell in a directory that its user can reach.

    Afterwards no process of it may be left.
    """
    place = Path(tempfile.mkdtemp(prefix="ordinary-"))
    try:
        shell = OrdinaryShell(place)
        with shell.reaching_python():
            yield shell
            assert shell.end() == {}
    finally:
        shutil.rmtree(place, ignore_errors=True)


def require_namespaces(shell: Shell) -> None:
    """Skip where this kernel lets an ordinary user make no namespaces."""
    if shell.run(needs("unshare"), "-r", "-p", "-f", "--mount-proc", "true", expect=None).code:
        missing("the right to make user namespaces")
