"""One shell for one page, kept open from its first command to its last, as a reader's would be."""

import os
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Self

_SECONDS = 180  # no promise about speed: only a command that hangs is ended
_MARK = b"\x1e\n"
# A page that fails half-way has not stopped its worker
_LEAVE_NOTHING = b"trap 'kill $(jobs -p) 2> /dev/null; wait' EXIT\n"


class Shell:
    """A bash that takes one command at a time; its stdin is empty, its stderr is its stdout."""

    def __init__(self, place: Path) -> None:
        script, self._script = os.pipe()
        self._output, output = os.pipe()
        self._process = subprocess.Popen(
            ["bash", "--noprofile", "--norc", f"/dev/fd/{script}"],
            cwd=place,
            env=environment(place),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=(script,),
        )
        os.close(script)
        os.close(output)
        os.write(self._script, _LEAVE_NOTHING)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._script)
        os.close(self._output)
        try:
            self._process.wait(_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise

    def do(self, command: str) -> list[str]:
        """Run a command and return the lines that it printed; `$?` is there for the next one."""
        os.write(
            self._script, f"{command}\n__code=$?; printf '\\036\\n'; (exit $__code)\n".encode()
        )
        return self._until_mark().decode(errors="replace").splitlines()

    def _until_mark(self) -> bytes:
        deadline = time.monotonic() + _SECONDS
        content = b""
        while not content.endswith(_MARK):
            ready, _, _ = select.select([self._output], [], [], max(0, deadline - time.monotonic()))
            piece = os.read(self._output, 65536) if ready else b""
            if not piece:
                raise AssertionError(
                    f"the command did not end; so far it said:\n{content.decode(errors='replace')}"
                )
            content += piece
        return content.removesuffix(_MARK)


def environment(place: Path) -> dict[str, str]:
    """Return what a reader's shell has: this very adjourn on PATH, and nothing of ours."""
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)])
    # Beside the project, as a person's home is not a project
    state = str(place.with_name(f"{place.name}-state"))
    return {
        "PATH": path,
        "HOME": str(place),
        "XDG_STATE_HOME": state,
        "LANG": "C.UTF-8",
        "TERM": "dumb",
    }
