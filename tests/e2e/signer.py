"""People with keys, and the files that say whose signatures count."""

import subprocess
from pathlib import Path

from tests.e2e.shell import Document, Shell
from tests.needs import needs

POLICY_OF_SSH = 'namespaces="adjourn"'


class Signers:
    """The keys of some people beside a shell's store, and the shell's allowed signers."""

    def __init__(self, shell: Shell) -> None:
        self._keygen = needs("ssh-keygen")
        self._shell = shell
        self.folder = Path(shell.environment["XDG_CONFIG_HOME"]) / "adjourn"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.allowed = self.folder / "allowed_signers"

    def key(self, name: str) -> str:
        """Return the path of somebody's key, made when it is first needed."""
        path = self._shell.place / f"key-of-{name}"
        if not path.exists():
            subprocess.run(
                [self._keygen, "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", path], check=True
            )
        return str(path)

    def allow(self, *names: str, options: str = POLICY_OF_SSH) -> None:
        """Let the signatures of these people count, and of nobody else."""
        keys = {name: Path(f"{self.key(name)}.pub").read_text().strip() for name in names}
        self.allowed.write_text("".join(f"{name} {options} {key}\n" for name, key in keys.items()))

    def configure(self, text: str) -> None:
        """Write the user's config."""
        (self.folder / "config.toml").write_text(text)

    def sign(self, document: bytes, *, by: str, namespace: str = "adjourn") -> str:
        """Sign anything, past the program."""
        words = [self._keygen, "-Y", "sign", "-q", "-n", namespace, "-f", self.key(by)]
        return subprocess.run(
            words, input=document, capture_output=True, check=True
        ).stdout.decode()


def waiting(shell: Shell) -> tuple[str, str]:
    """Return a task that waits for the approval of its own command, and the ask."""
    manifest: Document = shell.paused(shell.agent("approved.sh"))
    return manifest["task_id"], manifest["asks"][0]["id"]
