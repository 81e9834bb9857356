"""A task belongs to its repository: it goes on from there, or where its workspace is named."""

import pytest

from tests.e2e.shell import Document, Shell


@pytest.fixture
def held(shell: Shell) -> Document:
    """Return a pause in one repository, beside which there is another."""
    for name in ("one", "two"):
        (shell.place / name).mkdir()
        shell.run("git", "init", "-q", cwd=shell.place / name)
    words = ("run", "--output", "json", "--pause-on-approval", "--", "touch", "made")
    return shell.adjourn(*words, expect=10, cwd=shell.place / "one").doc


@pytest.mark.one_machine("the files of a shared store lie in no repository")
@pytest.mark.parametrize("verb", ["resume", "restart"])
def test_from_inside_another_repository_it_is_refused_with_what_works(
    shell: Shell, held: Document, verb: str
) -> None:
    """D-R26, D-R63, part 2 row 35."""
    store, task = ("--store", str(shell.place / "one" / ".adjourn")), held["task_id"]
    shell.adjourn("approve", held["asks"][0]["id"], *store)
    told = shell.adjourn(verb, task, *store, expect=6, cwd=shell.place / "two")
    assert f"belongs to {shell.place / 'one'}, and this is {shell.place / 'two'}" in told.err
    named = ("--workspace", str(shell.place / "two"))
    shell.adjourn(verb, task, *store, *named, expect=6, cwd=shell.place / "one")
    assert not (shell.place / "one" / "made").exists()
    command = told.err.partition("try: ")[2].strip()
    assert "--workspace" in command
    shell.run("sh", "-c", command, expect=None, cwd=shell.place / "two")
    assert (shell.place / "one" / "made").exists() is (verb == "resume")  # a restart asks again
    assert not (shell.place / "two" / "made").exists()


@pytest.mark.one_machine("the files of a shared store lie in no repository")
def test_outside_of_every_repository_and_below_its_own_it_goes_on(
    shell: Shell, held: Document
) -> None:
    store = ("--store", str(shell.place / "one" / ".adjourn"))
    below = shell.place / "one" / "below"
    below.mkdir()
    shell.adjourn("resume", held["task_id"], *store, expect=10, cwd=below)
    shell.adjourn("resume", held["task_id"], *store, expect=10, cwd=shell.place)


@pytest.mark.one_machine("the files of a shared store lie in no repository")
def test_git_status_stays_clean(shell: Shell) -> None:
    shell.run("git", "init", "-q")
    shell.adjourn("run", "--", "true")
    assert shell.run("git", "status", "--porcelain", "-uall").out == ""
