"""Whatever Codex's own rules and settings would let pass, the real Codex makes no call that the policy does not."""

from tests.codex.scene import Scene, outputs, shell, tool, traces
from tests.model.script import Turn

DONE = Turn(text="All done.")


# Of the home, or of the project
def test_a_rule_of_codex_that_allows_a_command_lets_nothing_through(real: Scene) -> None:
    calls = (shell("touch made.txt", name="call_A"), shell("mkdir made", name="call_B"))
    with real.model(
        [Turn(calls=calls), DONE], more=f'[projects."{real.work}"]\ntrust_level = "trusted"\n'
    ):
        for place, word in ((real.codex_home, "touch"), (real.work / ".codex", "mkdir")):
            (place / "rules").mkdir(parents=True)
            (place / "rules" / "default.rules").write_text(
                f'prefix_rule(pattern=["{word}"], decision="allow")\n'
            )
        for options in ((), ("--option", "trust-project=true")):
            real.run(options=options)
            assert sorted(ask["tool_call_id"] for ask in real.asks()[-2:]) == ["call_A", "call_B"]
            assert not list(real.work.glob("made*"))


def test_a_repository_that_its_person_trusts_starts_nothing_unless_the_task_trusts_it_too(
    real: Scene,
) -> None:
    """The workspace is a directory of it; its settings are at its root."""
    root, trace = real.work.parent, real.work / "trace.txt"
    (root / ".git").mkdir()
    (root / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (root / ".codex").mkdir()
    server = f'[mcp_servers.project]\ncommand = "sh"\nargs = ["-c", "echo started >> {trace}"]\n'
    (root / ".codex" / "config.toml").write_text(server)
    with real.model([DONE], more=f'[projects."{root}"]\ntrust_level = "trusted"\n'):
        real.run(expect=0)
        assert not trace.exists()
        real.run(expect=0, options=("--option", "trust-project=true"))
        assert trace.exists()


def test_what_the_policy_never_allows_is_turned_down_at_once_and_the_model_reads_why(
    real: Scene,
) -> None:
    real.allow('never = "reject"\n[[rule]]\nargs = ["touch", "**"]\naction = "never"\n')
    with real.model([Turn(calls=(shell("touch made.txt", name="call_A"),)), DONE]) as model:
        real.run(expect=0)
    assert not (real.work / "made.txt").exists()
    assert outputs(model.asked[-1])["call_A"].startswith("TOOL_CALL_REJECTED")
    assert len(real.shell.runs(real.task)) == 1


def test_tools_of_an_mcp_server_wait_too_one_after_the_other(real: Scene) -> None:
    calls = [
        Turn(calls=(tool(name, "1", name_of_call=f"{name}_{number}"),))
        for name in ("write", "look")
        for number in (1, 2)
    ]
    with real.model([*calls, DONE], more=traces(real)) as model:
        real.run()
        assert real.lines("trace.txt") == []
        real.approve_all()
        real.resume(expect=10)
        assert real.lines("trace.txt") == ["write 1"]
        real.approve_all()
        real.resume()
    assert real.lines("trace.txt") == ["write 1", "look 1"]
    assert "did look" in outputs(model.asked[-1])["look_2"]


def test_tools_of_an_mcp_server_that_can_run_side_by_side_wait_together(real: Scene) -> None:
    side_by_side = traces(real, approves=True).replace(
        "command =", "supports_parallel_tool_calls = true\ncommand ="
    )
    turns = [
        Turn(calls=tuple(tool(name, "1", name_of_call=f"{name}_{n}") for name in ("write", "look")))
        for n in (1, 2)
    ]
    with real.model([*turns, DONE], more=side_by_side):
        real.run()
        assert real.lines("trace.txt") == []
        assert sorted(ask["tool_call_id"] for ask in real.asks()) == ["look_1", "write_1"]
        real.approve_all()
        real.resume()
    assert sorted(real.lines("trace.txt")) == ["look 1", "write 1"]


def test_an_approved_tool_of_an_mcp_server_is_called_without_the_model_when_that_is_wanted(
    real: Scene,
) -> None:
    with real.model(
        [Turn(calls=(tool("write", "1", name_of_call="call_A"),)), DONE], more=traces(real)
    ) as model:
        real.run(options=("--option", "on-approve=execute"))
        real.approve_all()
        real.resume()
    assert real.lines("trace.txt") == ["write 1"]
    assert "did write" in outputs(model.asked[-1])["call_A"]
    assert len(model.asked) == 2
