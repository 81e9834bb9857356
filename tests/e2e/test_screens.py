"""The screens that people see most, at a terminal of 80 columns and 24 rows."""

from tests.e2e.shell import Shell
from tests.e2e.terminal import Terminal

COLUMNS, ROWS = 80, 24


def screen(shell: Shell, *words: str, colour: bool = True) -> Terminal:
    """Run a command at a terminal of the customary size, to its end."""
    env = {} if colour else {"NO_COLOR": "1"}
    with Terminal(shell, *words, columns=COLUMNS, rows=ROWS, env=env) as person:
        person.ends()
        return person


def test_a_pause_an_inbox_and_a_changed_file_fit_the_screen(shell: Shell) -> None:
    deploy = shell.script("echo one\necho two\necho three", name="deploy.sh")
    gated = ("run", "--pause-on-approval", "--", deploy, "--env", "production")
    paused = screen(shell, *gated)
    assert paused.code == 10
    assert paused.lines[0].startswith("Paused: 1 thing to settle  (task ")
    assert paused.lines[3] == "  no rule allows it"
    assert "    $ ./deploy.sh --env production" in paused.lines
    assert paused.lines[-2].startswith("Approve with: adjourn approve ")
    assert paused.lines[-2].endswith(" --resume")
    assert b"\x1b[33mapproval\x1b[0m" in paused.raw

    inbox = screen(shell, "inbox", colour=False)
    assert inbox.lines[0].split() == ["ASK", "KIND", "TASK", "SINCE", "WHAT"]
    assert len(inbox.lines) < ROWS
    assert b"\x1b[" not in inbox.raw

    # Changed after its approval: what is different is seen, not two digests
    ask, task = shell.inbox()[0]["id"], shell.inbox()[0]["task_id"]
    shell.adjourn("approve", ask)
    path = shell.place / "deploy.sh"
    path.write_text(path.read_text().replace("two", "2"))
    asked = screen(shell, "resume", task)
    assert asked.code == 10
    assert [row for row in asked.lines if row.startswith(("    - ", "    + "))] == [
        "    - echo two",
        "    + echo 2",
    ]
    assert asked.lines[-2].startswith("Approve with: ")

    # Too large to be kept: that is said
    shell.adjourn("approve", shell.inbox()[0]["id"])
    path.write_text(path.read_text() + "#" * (64 << 10))
    large = screen(shell, "resume", task)
    assert "changed; no copy kept" in " ".join(large.lines)
    assert any(
        "deploy.sh was sha256:" in row
        for row in shell.adjourn("show", task, "--full").out.split("\n")
    )

    # From a paused approval to the end it is one command, as printed
    hint = large.lines[-2].removeprefix("Approve with: ")
    assert shell.line(hint).out.endswith("one\n2\nthree\n")
    shell.adjourn("prune", "--older-than", "0")
    assert "echo two" not in str(shell.sql("select name, body from document"))
