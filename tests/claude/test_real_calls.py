"""Calls and faults that only the real Claude Code can show: other tools, long prompts, an API that is not there."""

from tests.claude.scene import Scene, blocks
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
