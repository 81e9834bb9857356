"""A copy of a store, however it was made.

What is approved in it was not approved for this place.
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.shell import Shell
from tests.needs import needs

GIT = (
    "git",
    "-c",
    "user.name=mallory",
    "-c",
    "user.email=m@example.com",
    "-c",
    "protocol.file.allow=always",
)
pytestmark = pytest.mark.one_machine("a copy of files is no copy of a database")

# From the shell's place into a new directory, with the approved store in it
Copy = Callable[[Shell, Path], None]


def command(line: str) -> Copy:
    """Copy with a line of shell, from $FROM to $TO."""

    def copy(shell: Shell, to: Path) -> None:
        needs(line.split(maxsplit=1)[0])
        shell.line(line, env={"FROM": str(shell.place), "TO": str(to)})

    return copy


def repository(origin: Shell, to: Path, *settings: str) -> Shell:
    """Return a repository beside the copy that tracks the store.

    It is made from a copy, too: the original stays as it is.
    """
    needs("git")
    shell = Shell(to.with_name("repository"))
    shutil.copytree(origin.place, shell.place)
    shell.sql("PRAGMA wal_checkpoint(TRUNCATE)")
    shell.run("git", "init", "-q", ".")
    for setting in settings:
        shell.run("git", "config", *setting.split("="))
    shell.run("git", "add", "--force", ".adjourn/adjourn.db", "approved.sh")
    shell.run(*GIT, "commit", "-q", "-m", "harmless")
    return shell


def clone(*settings: str) -> Copy:
    def copy(origin: Shell, to: Path) -> None:
        shell = repository(origin, to, *settings)
        shell.run("git", "clone", "-q", ".", str(to))
        for setting in settings:
            shell.run("git", "-C", str(to), "config", *setting.split("="))
        shell.run("git", "-C", str(to), "update-index", "--force-write-index")

    return copy


def split_index(origin: Shell, to: Path) -> None:
    clone()(origin, to)
    origin.run("git", "-C", str(to), "update-index", "--split-index")


def submodule(origin: Shell, to: Path) -> None:
    shell = repository(origin, to)
    outer = to.with_name("outer")
    shell.run("git", "init", "-q", str(outer))
    shell.run(*GIT, "-C", str(outer), "submodule", "--quiet", "add", str(shell.place), "inner")
    os.symlink(outer / "inner", to)


def worktree(origin: Shell, to: Path) -> None:
    repository(origin, to).run("git", "worktree", "add", "-q", str(to))


def bundle(origin: Shell, to: Path) -> None:
    shell = repository(origin, to)
    shell.run("git", "bundle", "create", "-q", "../all.bundle", "--all")
    shell.run("git", "clone", "-q", "../all.bundle", str(to))


def archive(origin: Shell, to: Path) -> None:
    to.mkdir()
    repository(origin, to).line(f"git archive HEAD | tar -x -C {to}")


def copied_by_python(shell: Shell, to: Path) -> None:
    shutil.copytree(shell.place, to)


def zipped(shell: Shell, to: Path) -> None:
    shutil.unpack_archive(shutil.make_archive(str(to), "zip", shell.place), to)
    (to / "approved.sh").chmod(0o700)


def copied_back(shell: Shell, to: Path) -> None:
    """Put a copy in the place of the original, which goes on elsewhere."""
    shell.run("cp", "-a", str(shell.place), str(to))
    shutil.move(str(shell.store), str(shell.place / "moved-away"))
    shutil.copytree(shell.place / "moved-away", shell.store)
    shutil.rmtree(to)
    os.symlink(shell.place, to)


def backup(shell: Shell, to: Path) -> None:
    (to / ".adjourn").mkdir(parents=True, mode=0o700)
    shell.adjourn("store", "backup", str(to / ".adjourn" / "adjourn.db"))
    shutil.copy(shell.place / "approved.sh", to)


def database_alone(shell: Shell, to: Path) -> None:
    (to / ".adjourn").mkdir(parents=True, mode=0o700)
    for path in shell.store.glob("adjourn.db*"):
        shutil.copy(path, to / ".adjourn")
    shutil.copy(shell.place / "approved.sh", to)


def into_another(shell: Shell, to: Path) -> None:
    """Put the database into a directory whose own store is known here."""
    to.mkdir()
    shell.adjourn("run", "--", "true", cwd=to)
    for path in (to / ".adjourn").glob("adjourn.db*"):
        path.unlink()
    for path in shell.store.glob("adjourn.db*"):
        shutil.copy(path, to / ".adjourn")
    shutil.copy(shell.place / "approved.sh", to)


COPIES: dict[str, Copy] = {
    "cp -r": command("cp -r $FROM $TO"),
    "cp -a": command("cp -a $FROM $TO"),
    "cp -al": command("cp -al $FROM $TO"),
    "cp --reflink": command("cp -r --reflink=auto $FROM $TO"),
    "tar": command("tar -C $FROM -cf $TO.tar . && mkdir $TO && tar -xf $TO.tar -C $TO"),
    "tar with numbers": command(
        "tar --numeric-owner -C $FROM -cpf - . | (mkdir $TO && tar -xpf - -C $TO)"
    ),
    "cp into a directory": command("cp -r $FROM/. $TO.2 && mv $TO.2 $TO"),
    "zip": zipped,
    "python": copied_by_python,
    "store backup": backup,
    "the database alone": database_alone,
    "the database into another store": into_another,
    "a copy in the original's place": copied_back,
    "git clone": clone(),
    "git clone, index of version 4": clone("index.version=4"),
    "git clone, split index": split_index,
    "git clone of a bundle": bundle,
    "git archive": archive,
    "git submodule": submodule,
    "git worktree": worktree,
}
CHANGING = (copied_back,)  # what changes the original
STARTS = (
    ("worker", "--once"),
    ("resume", "TASK"),
    ("restart", "TASK"),
    ("run", "--", "touch", "effects"),
)
LOOKS = (
    ("tasks",),
    ("inbox",),
    ("show", "TASK"),
    ("runs", "TASK"),
    ("audit", "export"),
    ("doctor",),
)


class Origin(Shell):
    """A place with a store in it: one call is approved, another waits."""

    def __init__(self, place: Path) -> None:
        place.mkdir()
        super().__init__(place)
        manifest = self.paused(self.agent("approved.sh"))
        self.waits = self.paused("./approved.sh")["asks"][0]["id"]
        self.task = manifest["task_id"]
        self.adjourn("approve", manifest["asks"][0]["id"])


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Origin:
    """Return what is copied again and again."""
    return Origin(tmp_path_factory.mktemp("origin") / "place")


def require_refusal(shell: Shell, *words: str, at: Path) -> None:
    told = shell.adjourn(*words, cwd=at, expect=5)
    assert "adjourn store adopt" in told.err, told.err


def test_there_are_twenty_ways_to_copy() -> None:
    assert len(COPIES) == 20


@pytest.mark.parametrize("way", COPIES)
def test_a_copy_starts_nothing_and_decides_nothing(
    origin: Origin, tmp_path: Path, way: str
) -> None:
    source = Origin(tmp_path / "own") if COPIES[way] in CHANGING else origin
    copied = tmp_path / "copied"
    COPIES[way](source, copied)
    require_refusal(source, "worker", "--once", at=copied)
    require_refusal(source, "approve", source.waits, at=copied)
    assert source.task in source.adjourn("tasks", "--output", "json", cwd=copied).out
    assert not (copied / "effects").exists()
    assert not (source.place / "effects").exists()


@pytest.mark.parametrize(
    "words", [*STARTS, ("reject", "WAITS"), ("cancel", "TASK"), ("execute", "plan.toml")]
)
def test_no_verb_changes_a_copy(origin: Origin, tmp_path: Path, words: tuple[str, ...]) -> None:
    shutil.copytree(origin.place, tmp_path / "copied")
    (tmp_path / "copied" / "plan.toml").write_text(
        '[[task]]\nid = "one"\ncommand = ["touch", "effects"]\n'
    )
    known = {"TASK": origin.task, "WAITS": origin.waits}
    done = origin.adjourn(
        *(known.get(word, word) for word in words), cwd=tmp_path / "copied", expect=None
    )
    assert done.code == (5 if words[0] != "execute" else done.code)
    assert done.code != 0
    assert not (tmp_path / "copied" / "effects").exists()


def test_a_copy_can_be_looked_at(origin: Origin, tmp_path: Path) -> None:
    """Also one that brings a response along, which would answer something."""
    shutil.copytree(origin.place, tmp_path / "copied")
    (tmp_path / "copied" / ".adjourn" / "clarifications").mkdir()
    response = f"agent_id: {origin.task}\nresponses:\n  - question_id: Q1\n    answer: us\nresume_signal: true\n"
    (
        tmp_path / "copied" / ".adjourn" / "clarifications" / f"{origin.task}.response.yaml"
    ).write_text(response)
    for words in LOOKS:
        done = origin.adjourn(
            *(word.replace("TASK", origin.task) for word in words),
            cwd=tmp_path / "copied",
            expect=None,
        )
        assert done.code == (1 if words == ("doctor",) else 0), done
        assert words != ("doctor",) or "adjourn store adopt" in done.out
