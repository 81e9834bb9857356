"""Links that a repository brings lead no verb to a file outside of it.

Nothing there is written, printed or run.
"""

import re
from pathlib import Path

import pytest

from tests.e2e.shell import Shell
from tests.security.every_verb import WORDS, try_verbs

PRIVATE = "words of the user alone"
FOLDERS = (
    "runs",
    "session",
    "started",
    "supervisors",
    "wake",
    "bin",
    "plans",
    "edits",
    "clarifications",
    "checkpoints",
    "notify",
)
FILES = (
    *(
        "adjourn.db",
        "adjourn.db-wal",
        "adjourn.db-shm",
        "adjourn.db-journal",
        "write.lock",
        "moving.json",
        "database.json",
    ),
    *(
        ".gitignore",
        "policy.toml",
        "supervision.yaml",
        "config.toml",
        "notify.lock",
        "session/pause.json",
    ),
)
TARGETS = {
    "folder": "folder",
    "file": "secret.toml",
    "nothing": "missing",
    "program": "tool",
    "store": "store",
}


_ALWAYS = frozenset({"inbox", "show", "approve", "worker", "resume", "store adopt"})
_SHARES = 8


class Outside:
    """The user's own files, which no link of a repository may lead to."""

    def __init__(self, place: Path) -> None:
        self.place = place
        (place / "folder").mkdir(mode=0o700)
        (place / "folder" / "notes").write_text(PRIVATE)
        (place / "secret.toml").write_text(f'password = "{PRIVATE}"\n[[rule]]\n{PRIVATE}\n')
        (place / "tool").write_text(f"#!/bin/sh\necho ran >> {place}/ran\n")
        (place / "tool").chmod(0o700)
        (place / "store").mkdir(mode=0o700)

    def state(self) -> dict[str, tuple[int, int, bytes]]:
        """Return all that is there: names, modes, times, content."""
        found: dict[str, tuple[int, int, bytes]] = {}
        for path in (self.place, *self.place.rglob("*")):
            about = path.lstat()
            content = path.read_bytes() if path.is_file() else b""
            found[str(path)] = (about.st_mode, about.st_mtime_ns, content)
        return found


@pytest.fixture
def outside(tmp_path_factory: pytest.TempPathFactory) -> Outside:
    """Return a place of the user's outside of the workspace."""
    return Outside(tmp_path_factory.mktemp("outside"))


def _use(shell: Shell, *, only: frozenset[str] | None) -> str:
    """Make tasks and use verbs as a person would, whether it works or not; return all that was printed."""
    said: list[str] = []

    def begin(*words: str) -> dict[str, str]:
        done = shell.adjourn("run", "--output", "json", *words, expect=None)
        assert "Traceback" not in done.err, done.err
        assert "a defect in adjourn" not in done.out + done.err, done.out + done.err
        said.append(done.out + done.err)
        found = re.search(r'"task_id": ?"(\w+)"', done.out), re.search(r'"id": ?"(\w+)"', done.out)
        task, ask = (each[1] if each else "nothing" for each in found)
        return {"task": task, "ask": ask}

    asks = shell.script("exec adjourn ask which?", name="work.sh")
    (shell.place / "plan.toml").write_text('[[task]]\nid = "a"\ncommand = ["/bin/true"]\n')
    first = begin("--pause-on-approval", "--", "/bin/true")
    asking = begin("--", asks)
    names = {
        **first,
        "other": asking["task"],
        "reject": first["ask"],
        "asking": asking["task"],
        "question": asking["ask"],
    }
    return "".join(said) + try_verbs(shell, names, only=only)


def _links() -> list[tuple[str, str]]:
    whole = [(".adjourn", target) for target in TARGETS]
    folders = [(f".adjourn/{name}", "folder") for name in FOLDERS]
    files = [(f".adjourn/{name}", "file") for name in FILES]
    missing = [
        (f".adjourn/{name}", "nothing")
        for name in ("runs", "adjourn.db", "adjourn.db-wal", "policy.toml")
    ]
    return [
        *whole,
        *folders,
        *files,
        *missing,
        ("supervision.yaml", "file"),
        (".adjourn/bin/adjourn", "program"),
    ]


@pytest.mark.one_machine("a repository brings the files of one machine's store")
@pytest.mark.parametrize(("link", "target"), _links())
def test_no_link_of_a_repository_leads_a_verb_outside(
    shell: Shell, outside: Outside, sweep: str, link: str, target: str
) -> None:
    """Some verbs with every link, each verb with several of them; with `--sweep full` all with all."""
    share = _links().index((link, target)) % _SHARES
    only = _ALWAYS | frozenset(sorted(WORDS)[share::_SHARES])
    path = shell.place / link
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.symlink_to(outside.place / TARGETS[target])
    before = outside.state()
    printed = _use(shell, only=None if sweep == "full" else only)
    assert outside.state() == before
    assert PRIVATE not in printed


@pytest.mark.one_machine("a repository brings the files of one machine's store")
def test_a_draft_that_is_a_link_is_not_written_through(shell: Shell, outside: Outside) -> None:
    """A file is written under a name with the writer's pid first, and a repository can bring one for every pid."""
    session = shell.place / ".adjourn" / "session"
    session.mkdir(mode=0o700, parents=True)
    (shell.place / ".adjourn").chmod(0o700)
    script = f"for n in $(seq 0 400); do ln -s {outside.place}/secret.toml .adjourn/session/pause.json.$(($$ + n)).tmp; done"
    before = outside.state()
    shell.run("sh", "-c", f"{script}; exec adjourn run --pause-on-approval -- /bin/true", expect=10)
    assert (session / "pause.json").is_file()
    assert outside.state() == before
