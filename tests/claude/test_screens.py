"""What a person sees of Claude Code's calls at a terminal of 80 columns and 24 rows."""

from pathlib import Path

from tests.claude.scene import GATED, Fake, bash
from tests.e2e.terminal import Terminal
from tests.model.script import ToolUse, Turn

ROWS = 24


def screen(fake: Fake, *words: str, colour: bool = True) -> Terminal:
    """Run a command at a terminal of the customary size, to its end."""
    env = {} if colour else {"NO_COLOR": "1"}
    with Terminal(fake.shell, *words, columns=80, rows=ROWS, env=env) as person:
        person.ends()
        return person


def write(path: Path, content: str, *, name: str) -> ToolUse:
    return ToolUse(name="Write", arguments={"file_path": str(path), "content": content}, id=name)


def test_a_write_an_edit_and_a_shell_call_are_read_at_a_glance(fake: Fake) -> None:
    notes, guide = fake.work / "notes.md", fake.work / "guide.md"
    notes.write_text("# Notes\n\none\ntwo\nthree\n")
    edit = {"file_path": str(notes), "old_string": "two\n", "new_string": "2\n"}
    fake.play(
        [
            Turn(
                text="I bring the guide up to date.",
                calls=(
                    write(guide, "# Guide\n\nRead it.\n", name="toolu_new"),
                    write(notes, "# Notes\n\none\ntwo\nfour\n", name="toolu_write"),
                    ToolUse(name="Edit", arguments=edit, id="toolu_edit"),
                    bash("wc -l notes.md && git status", name="toolu_shell"),
                ),
            ),
            Turn(text="All done."),
        ]
    )
    fake.run()
    asks = {ask["tool_call_id"]: ask["id"] for ask in fake.asks()}

    assert len(asks) == 4

    new = screen(fake, "show", asks["toolu_new"])
    assert new.lines[1:3] == ["  no rule allows it", new.lines[2]]
    assert "(new file)" in "".join(new.lines)
    assert "    + Read it." in new.lines
    assert "\x1b[32m+ Read it." in new.raw.decode()  # what is added is green

    written = screen(fake, "show", asks["toolu_write"], colour=False)
    first = written.lines.index("    @@ line 3")  # how long the path is depends on where it is
    assert written.lines[first : first + 5] == [
        "    @@ line 3",
        "      one",
        "      two",
        "    - three",
        "    + four",
    ]
    assert b"\x1b[" not in written.raw
    edited = screen(fake, "show", asks["toolu_edit"])
    assert [row for row in edited.lines if row[4:5] in {"-", "+"}] == ["    - two", "    + 2"]

    shell = screen(fake, "show", asks["toolu_shell"])
    assert "    $ wc -l notes.md && git status" in shell.lines
    for seen in (new, written, edited, shell):
        # The first row is still on the screen, the agent's own words come last
        assert seen.lines[0].startswith("approval ")
        assert "agent │ I bring the guide up to date." in seen.lines[-4]
        assert seen.lines[-2].startswith("Approve with: adjourn approve ")

    # The file is another by now: what is shown is what was asked about
    notes.write_text("all different\n")
    again = screen(fake, "show", asks["toolu_write"])
    assert "    - three" in again.lines
    fake.shell.adjourn("cancel", fake.task)


def test_a_long_file_is_cut_to_the_screen_and_says_where_the_rest_is(fake: Fake) -> None:
    text = "".join(f"line {number}\n" for number in range(200))
    long = Turn(text="Long.", calls=(write(fake.work / "long.txt", text, name="toolu_long"),))
    fake.play([long, Turn(text="All done.")])
    fake.run()
    seen = screen(fake, "show", fake.asks()[0]["id"])
    assert seen.lines[0].startswith("approval ")
    assert any(
        "more lines. The rest: adjourn show" in row and "--full" in row for row in seen.lines
    )
    assert "line 199" in fake.shown()
    fake.shell.adjourn("cancel", fake.task)


def test_a_person_sees_each_call_as_it_happens_with_its_fate(fake: Fake) -> None:
    fake.let_pass('args = ["echo", "**"]')
    first = Turn(text="One.", calls=(bash("echo hi", name="toolu_free"),))
    second = Turn(text="Two.", calls=(bash("touch made", name="toolu_held"),))
    fake.play([first, second, Turn(text="All done.")])
    shell = fake.shell
    with Terminal(shell, *GATED, "do it", columns=80, rows=40) as person:
        assert person.ends() == 10
        rows = [row.removeprefix("err │ adjourn: ") for row in person.lines if row[:3] == "err"]
    assert rows == [
        "call toolu_free may run: Bash: echo hi",
        "call toolu_free is done: Bash: echo hi",
        "call toolu_held waits for a person: Bash: touch made",
    ]
    # Where nobody watches, stderr stays as it was
    assert "toolu" not in fake.resume("--reject-all").err
