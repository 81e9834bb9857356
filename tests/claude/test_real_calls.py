"""Calls and faults that only the real Claude Code can show.

Other tools, long prompts, an API that is not there.
"""

from tests.claude.scene import Scene, bash, blocks, history
from tests.model.script import ToolUse, Turn

DONE = Turn(text="All done.")


def write(name: str, *, call: str) -> ToolUse:
    """Return a call whose path is relative: the hook is told the absolute one."""
    return ToolUse(name="Write", arguments={"file_path": name, "content": f"{name}\n"}, id=call)


def test_files_are_written_once_each_though_the_hook_spells_their_paths_otherwise(
    real: Scene,
) -> None:
    first = Turn(
        text="Two files.", calls=(write("a.txt", call="toolu_A"), write("b.txt", call="toolu_B"))
    )
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
    # Of 120 kB: more than we put into an argument, less than adjourn itself can be given
    prompt = "word " * 24_000 + "the end"
    with real.model([DONE]) as model:
        real.run(prompt, expect=0)
    assert any(said == prompt for _, said in blocks(model.asked[0]))


def test_an_api_that_cannot_be_reached_pauses_the_task_which_goes_on_when_it_is_back(
    real: Scene,
) -> None:
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


def test_a_call_waits_though_its_name_is_that_of_one_that_needed_nobody(real: Scene) -> None:
    """Some servers count the calls of each message anew."""
    (real.work / "notes.txt").write_text("remember\n")
    reads = ToolUse(name="Read", arguments={"file_path": str(real.work / "notes.txt")}, id="call_0")
    makes = bash("echo hi >> made.txt", name="call_0")
    with real.model(
        [Turn(text="I read.", calls=(reads,)), Turn(text="I make it.", calls=(makes,)), DONE]
    ):
        real.run()
        assert real.lines() == []
        assert [ask["kind"] for ask in real.asks()] == ["approval"]
        real.approve_all()
        real.resume()
    assert real.lines() == ["hi"]


def test_a_file_is_read_unasked_only_if_it_is_in_the_workspace_when_it_is_read(real: Scene) -> None:
    """What stands before it in the same message puts a link in its place."""
    (real.home / "secret.txt").write_text("nobody's business\n")
    real.let_pass('args = ["ln", "**"]')
    links = bash(f"ln -s {real.home}/secret.txt notes.txt", name="toolu_A")
    reads = ToolUse(
        name="Read", arguments={"file_path": str(real.work / "notes.txt")}, id="toolu_B"
    )
    with real.model([Turn(text="Both.", calls=(links, reads)), DONE]) as model:
        real.run(expect=0)
    assert (real.work / "notes.txt").is_symlink()
    assert b"nobody's business" not in b"".join(history(model.asked[-1]))
