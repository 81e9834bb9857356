"""Calls and faults that only the real Claude Code can show: other tools, long prompts, an API that is not there."""

from tests.claude.scene import GATED, Scene, bash, blocks, history
from tests.e2e.shell import until
from tests.model.script import ToolUse, Turn

DONE = Turn(text="All done.")


def write(name: str, *, call: str) -> ToolUse:
    """Return a call whose path is relative: the hook is told the absolute one."""
    return ToolUse(name="Write", arguments={"file_path": name, "content": f"{name}\n"}, id=call)


def test_files_are_written_once_each_though_the_hook_spells_their_paths_otherwise(real: Scene) -> None:
    first = Turn(text="Two files.", calls=(write("a.txt", call="toolu_A"), write("b.txt", call="toolu_B")))
    again = Turn(text="The other.", calls=(write("b.txt", call="toolu_C"),))
    with real.model([first, again, DONE]):
        real.run()
        assert len(real.asks()) == 2
        assert not (real.work / "a.txt").exists()
        assert not (real.work / "b.txt").exists()
        real.approve_all()
        real.resume()
    assert (real.work / "a.txt").read_text() == "a.txt\n"
    assert (real.work / "b.txt").read_text() == "b.txt\n"


def test_a_call_that_the_policy_lets_pass_waits_beside_one_that_does_not(real: Scene) -> None:  # part 2, row 9
    real.let_pass('args = ["touch", "*"]')
    both = Turn(text="Both.", calls=(bash("touch free", name="toolu_A"), bash("echo B >> made.txt", name="toolu_B")))
    again = Turn(text="The first.", calls=(bash("touch free", name="toolu_C"),))
    with real.model([both, again, DONE]):
        real.run()
        assert [ask["tool_call_id"] for ask in real.asks()] == ["toolu_B"]
        assert not (real.work / "free").exists()
        real.approve_all()
        real.resume()
    assert real.lines() == ["B"]
    assert (real.work / "free").exists()


def test_reading_needs_nobody(real: Scene) -> None:
    (real.work / "notes.txt").write_text("remember\n")
    reads = Turn(
        text="I read.", calls=(ToolUse(name="Read", arguments={"file_path": str(real.work / "notes.txt")}, id="toolu_A"),)
    )
    with real.model([reads, DONE]) as model:
        real.run(expect=0)
    assert b"remember" in history(model.asked[-1])[-1]


def test_a_prompt_that_no_argument_can_hold_reaches_the_model_whole(real: Scene) -> None:
    prompt = "word " * 24_000 + "the end"  # of 120 kB: more than we put into an argument, less than adjourn itself can be given
    with real.model([DONE]) as model:
        real.run(prompt, expect=0)
    assert any(said == prompt for _, said in blocks(model.asked[0]))


def test_an_api_that_cannot_be_reached_pauses_the_task_which_goes_on_when_it_is_back(real: Scene) -> None:
    real.shell.environment["ANTHROPIC_BASE_URL"] = "http://127.0.0.1:9"
    left = real.run()
    assert "Claude Code ended with api_error" in left.err
    assert "api_error" in real.shell.runs(real.task)[0]["message"]
    assert f"adjourn resume {real.task}" in left.out
    with real.model([DONE]) as model:
        real.resume()
    assert any(said == "do it" for _, said in blocks(model.asked[0]))


def test_doctor_says_what_the_installed_program_can_do(real: Scene) -> None:
    said = real.shell.adjourn("doctor", expect=None).out
    assert "its hook can defer calls, and its sessions can be resumed by id and by file" in said


def test_a_tool_that_ignores_signals_and_its_daemons_are_gone_after_a_pause(real: Scene) -> None:
    stubborn = (
        "trap '' INT TERM HUP; (setsid sh -c 'trap \"\" INT TERM; sleep 60' &) ; echo began >> made.txt; sleep 60; sleep 60"
    )
    with real.model([Turn(text="Stubborn.", calls=(bash(stubborn, name="toolu_A"),)), DONE]):
        process = real.shell.start(*GATED[:-1], "do it")
        until(lambda: real.lines() == ["began"], what="the tool runs", seconds=60)
        process.send_signal(2)
        process.communicate(timeout=60)
        assert process.returncode == 10
        assert real.shell.processes() == {}
