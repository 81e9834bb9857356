"""Signs and verifies with ssh-keygen.

The keys, agents and hardware tokens that people have already.
"""

import os
import subprocess
from collections.abc import Sequence
from typing import Self

from adjourn.core.authority.signed import NAMESPACE
from adjourn.core.errors import AdjournError, Misuse, NotAllowed

_PROGRAM = "ssh-keygen"
_PLACES = ("/usr/bin", "/bin", "/usr/local/bin", "/run/current-system/sw/bin", "/opt/homebrew/bin")
_OTHERS_WRITE = 0o022
_SECONDS = 20.0
_LONGEST = 16 * 1024
_PATTERNS = frozenset("*?!")
_BEGIN, _END = "-----BEGIN SSH SIGNATURE-----", "-----END SSH SIGNATURE-----"


def sign(document: bytes, *, key: str) -> str:
    """Return a document's signature by a private key, or by a public one that an SSH agent has."""
    if not os.path.isfile(key):
        raise Misuse(f"{key} is not a key file", way_out="ssh-keygen -t ed25519 -f FILE")
    done = _run(["-Y", "sign", "-q", "-n", NAMESPACE, "-f", key], document, terminal=True)
    if done.returncode or _BEGIN.encode() not in done.stdout:
        raise NotAllowed(
            f"{_PROGRAM} did not sign: {_last_line(done.stderr)}", way_out=f"ssh-keygen -y -f {key}"
        )
    return done.stdout.decode()


def require_program() -> None:
    """Refuse to go on without ssh-keygen."""
    _found()


class SshSignatures:
    """Knows whose signatures count by an allowed-signers file."""

    def __init__(self, allowed: str, *, revoked: str | None = None) -> None:
        self._allowed = allowed
        self._revoked = revoked

    def signer(self, document: bytes, signature: str) -> str:
        """Return who signed these very bytes, and still may, or raise NotAllowed."""
        if not os.path.isfile(self._allowed):
            raise NotAllowed(
                f"no signature counts: {self._allowed} is missing",
                way_out=f'echo "$USER $(cat ~/.ssh/id_ed25519.pub)" >> {self._allowed}',
            )
        if len(signature) > _LONGEST or not (
            signature.startswith(_BEGIN) and signature.rstrip().endswith(_END)
        ):
            raise NotAllowed(
                "that is no signature of ssh-keygen", way_out="adjourn approve ASK --sign KEY"
            )
        with _on_a_descriptor(signature.encode("utf-8", "replace")) as place:
            name = self._name(place)
            self._verify(document, place, name)
        return name

    def _name(self, place: "_on_a_descriptor") -> str:
        """Return the name that the key goes by; one file may know it by several."""
        found = _run(
            ["-Y", "find-principals", "-f", self._allowed, "-s", place.path], b"", inherits=place
        )
        names = [
            name
            for line in found.stdout.decode("utf-8", "replace").splitlines()
            for name in line.split(",")
        ]
        plain = [
            name
            for name in names
            if name and _PATTERNS.isdisjoint(name) and name.isprintable() and " " not in name
        ]
        if found.returncode or not plain:
            raise NotAllowed(
                f"{self._allowed} does not name the key of that signature", way_out="adjourn doctor"
            )
        return plain[0]

    def _verify(self, document: bytes, place: "_on_a_descriptor", name: str) -> None:
        revoked = ["-r", self._revoked] if self._revoked else []
        words = [
            "-Y",
            "verify",
            "-f",
            self._allowed,
            "-I",
            name,
            "-n",
            NAMESPACE,
            "-s",
            place.path,
            *revoked,
        ]
        done = _run(words, document, inherits=place)
        if done.returncode:
            raise NotAllowed(
                f"the signature of {name} does not hold: {_last_line(done.stderr or done.stdout)}",
                way_out="sign it again",
            )


class _on_a_descriptor:  # noqa: N801 -- reads as the place that it is
    """Bytes that a child can read by a path, without a file that others could find."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self.fd = -1

    @property
    def path(self) -> str:
        """What a child opens."""
        return f"/dev/fd/{self.fd}"

    def __enter__(self) -> Self:
        self.fd = (
            os.memfd_create("signature", 0) if hasattr(os, "memfd_create") else _unnamed_file()
        )
        os.write(self.fd, self._content)
        os.lseek(self.fd, 0, os.SEEK_SET)
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.fd)


def _unnamed_file() -> int:
    import tempfile  # slow to import

    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def _run(
    words: Sequence[str],
    stdin: bytes,
    *,
    inherits: _on_a_descriptor | None = None,
    terminal: bool = False,
) -> "subprocess.CompletedProcess[bytes]":
    """Run ssh-keygen, without a time limit: a person may have to type or to touch a token."""
    try:
        return subprocess.run(
            [_found(), *words],
            input=stdin,
            stdout=subprocess.PIPE,
            stderr=None if terminal else subprocess.PIPE,
            pass_fds=(inherits.fd,) if inherits else (),
            timeout=None if terminal else _SECONDS,
            env={**os.environ, "LC_ALL": "C"},
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise NotAllowed(
            f"{_PROGRAM} did not answer within {_SECONDS:g} s", way_out="run the command again"
        ) from error


def _found() -> str:
    return find_program(_PLACES, os.environ.get("PATH", ""))


def find_program(places: Sequence[str], path: str) -> str:
    """Return the ssh-keygen of the system; one on PATH counts only if none but root can change it.

    A program of that name before the real one on PATH could accept any signature.
    """
    for place in places:
        if os.access(os.path.join(place, _PROGRAM), os.X_OK):
            return os.path.join(place, _PROGRAM)
    for place in filter(os.path.isabs, path.split(os.pathsep)):
        found = os.path.join(place, _PROGRAM)
        if os.access(found, os.X_OK) and _is_roots(place) and _is_roots(found):
            return found
    raise AdjournError(
        f"{_PROGRAM} is not installed",
        way_out="install OpenSSH's client: apt install openssh-client",
    )


def _is_roots(path: str) -> bool:
    found = os.stat(path)
    return found.st_uid == 0 and not found.st_mode & _OTHERS_WRITE


def _last_line(output: bytes | None) -> str:
    lines = (output or b"it said nothing").decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else "it said nothing"
