"""A program that exits 10 or 90 and asked nothing: the ask says that it ran, or it has failed."""

import pytest

from tests.e2e.shell import Shell

RSYNC = 'echo sending; echo "rsync: read failed: Connection reset by peer" >&2; exit 10'


def test_the_ask_says_first_that_it_ran_with_which_code_and_its_last_lines(shell: Shell) -> None:
    """Part 2 row 2."""
    manifest = shell.paused(shell.script(RSYNC))
    (ask,) = manifest["asks"]
    assert ask["why"] == ["it ran and left with exit code 10, which asks for approval"]
    assert ask["last_lines"] == "rsync: read failed: Connection reset by peer"
    shown = [row.strip() for row in shell.adjourn("show", manifest["task_id"]).out.splitlines()]
    first = next(at for at, row in enumerate(shown) if row.startswith("approval"))
    assert shown[first + 1] == ask["why"][0]
    assert shown[first + 3] == f"agent │ {ask['last_lines']}"


@pytest.mark.parametrize("by", ["flag", "environment", "config"])
def test_the_convention_can_be_switched_off(shell: Shell, by: str) -> None:
    flag = ("--exit-codes", "none") if by == "flag" else ()
    env = {"ADJOURN_EXIT_CODES": "none"} if by == "environment" else {}
    if by == "config":
        place = shell.place / ".config" / "adjourn"
        place.mkdir(parents=True)
        (place / "config.toml").write_text('exit_codes = "none"\n')
    manifest = shell.json("run", *flag, "--", shell.script(RSYNC), expect=1, env=env)
    assert manifest["error"]["message"] == "exit code 10"
    assert shell.inbox() == []


def test_what_asks_still_waits_where_the_convention_is_off(shell: Shell) -> None:
    asking = shell.script('adjourn ask "which?" --key which || exit $?')
    shell.json("run", "--exit-codes", "none", "--", asking, expect=10)
