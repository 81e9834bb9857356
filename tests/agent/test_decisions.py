"""What people decide, what runs then, and what the model is told."""

import threading
from pathlib import Path

import pytest

from tests.agent.desk import Desk, command, desk, finish, out_of_order, say, use
from tests.e2e.shell import Done
from tests.model.script import ToolUse

THREE = use(
    *(command(f"echo {number} >> log.txt", f"tc_{number}") for number in (1, 2, 3)),
    text="Three things.",
)


def test_a_mixed_decision_runs_what_was_approved_and_rejects_the_rest(tmp_path: Path) -> None:
    """A-R18 A-R19 A-R37 A-R41 A-R44 A-R47.

    Silence is a rejection, and results come in the order of the calls.
    """
    with desk(tmp_path, THREE, finish()) as person:
        paused = person.agent_run(expect=10)
        assert [call["id"] for call in paused["pause_reason"]["pending_tool_calls"]] == [
            "tc_1",
            "tc_2",
            "tc_3",
        ]
        person.resumed(paused, "--approve", "tc_2", "--reject", "tc_3", expect=0)
        assert person.lines("log.txt") == ["2"]
    assert person.results() == {
        "tc_1": "TOOL_CALL_REJECTED",
        "tc_2": "[no output]",
        "tc_3": "TOOL_CALL_REJECTED",
    }
    assert [message["role"] for message in person.sent()] == [
        "user",
        "assistant",
        "tool",
        "tool",
        "tool",
    ]
    assert out_of_order(person.sent()) is None


def test_the_reason_of_a_rejection_stands_on_the_next_line(tmp_path: Path) -> None:
    """A-R39 A-R44."""
    with desk(tmp_path, THREE, finish()) as person:
        person.resumed(
            person.agent_run(expect=10), "--reject-all", "--reason", "not on a Friday", expect=0
        )
        assert person.lines("log.txt") == []
    assert set(person.results().values()) == {"TOOL_CALL_REJECTED\nnot on a Friday"}


def test_all_run_in_order_and_one_that_fails_stops_no_other(tmp_path: Path) -> None:
    """A-R38 A-R51."""
    turn = use(
        command("echo 1 >> log.txt; echo broken >&2; exit 3", "a"),
        command("echo 2 >> log.txt", "b"),
    )
    with desk(tmp_path, turn, finish()) as person:
        person.resumed(person.agent_run(expect=10), "--approve-all", expect=0)
        assert person.lines("log.txt") == ["1", "2"]
    assert person.results() == {"a": "broken\n[exit code 3]", "b": "[no output]"}


@pytest.mark.parametrize(
    ("line", "decision", "told"),
    [
        ("echo ran >> log.txt", "--reject", "deploy (run_command) was rejected"),
        ("echo ran >> log.txt; exit 3", "--approve", "deploy (run_command) failed"),
    ],
)
def test_finish_counts_only_if_all_other_calls_of_its_message_succeeded(
    tmp_path: Path, line: str, decision: str, told: str
) -> None:
    """A-R3 A-R44 A-R45. Its result says why not, and the loop goes on."""
    done = ToolUse(name="finish", arguments={"message": "Deployed to production."}, id="done")
    wrong = use(ToolUse(name="launch_rocket", id="rocket"), done)
    script = [use(command(line, "deploy"), done), wrong, use(done, done), say("never asked for")]
    with desk(tmp_path, *script) as person:
        ended = person.resumed(person.agent_run(expect=10), decision, "deploy", expect=0)
        assert ended["steps_taken"] == 3
        assert person.results(1)["done"] == (
            f"the work is not finished: {told}; call finish again when nothing is left to do"
        )
        assert "rocket (launch_rocket) failed" in list(person.results().values())[-1]


def test_nothing_of_a_batch_runs_before_the_pause_also_what_needs_nobody(tmp_path: Path) -> None:
    """A-R13, and row 9 of part 2: what nobody has to decide waits too, and runs on resume."""
    allow(tmp_path, 'tool = "write_file"')
    write = ToolUse(
        name="write_file", arguments={"path": "note.txt", "content": "hello"}, id="free"
    )
    with desk(tmp_path, use(write, command("uname -s", "gated")), finish()) as person:
        paused = person.agent_run(expect=10)
        assert [call["id"] for call in paused["pause_reason"]["pending_tool_calls"]] == ["gated"]
        assert not (tmp_path / "note.txt").exists()
        person.resumed(paused, "--approve", "gated", expect=0)
    assert person.results() == {"free": "note.txt: 5 bytes written", "gated": "Linux"}


def test_an_inbox_decides_one_request_and_the_task_goes_on_when_none_is_left(
    tmp_path: Path,
) -> None:
    """Row 8 of part 2."""
    with desk(
        tmp_path,
        use(command("echo a >> log.txt", "a"), command("echo b >> log.txt", "b")),
        finish(),
    ) as person:
        paused = person.agent_run(expect=10)
        task, (first, second) = paused["task_id"], paused["asks"]
        person.adjourn("approve", first["id"])
        assert (
            person.json("resume", task, expect=10)["pause_reason"]["pending_tool_calls"][0]["id"]
            == "b"
        )
        assert person.lines("log.txt") == []
        person.adjourn("reject", second["id"], "--reason", "one is enough")
        person.json("resume", task, expect=0)
        assert person.lines("log.txt") == ["a"]
    assert person.results() == {"a": "[no output]", "b": "TOOL_CALL_REJECTED\none is enough"}


def test_the_model_is_told_that_a_reviewer_replaced_its_call(tmp_path: Path) -> None:
    with desk(tmp_path, use(command("echo prod >> log.txt", "tc_1")), finish()) as person:
        paused = person.agent_run(expect=10)
        task, (ask,) = paused["task_id"], paused["asks"]
        person.adjourn("approve", ask["id"], "--set", "command=echo staging >> log.txt")
        person.json("resume", task, expect=0)
        assert person.lines("log.txt") == ["staging"]
    told = "A reviewer replaced the arguments of this call. What was carried out is: "
    assert person.results()["tc_1"].startswith(told + '{"command":"echo staging >> log.txt"}')


def test_words_and_decisions_do_not_mix_and_change_nothing(tmp_path: Path) -> None:
    """A-R20 A-R60: both at once, an id that does not exist, a text for an approval, a decision for a question."""
    with desk(
        tmp_path, use(command("echo ran >> log.txt", "tc_1")), say("And now?"), finish()
    ) as person:
        paused = person.agent_run(expect=10)
        bad = [
            (["some words", "--approve", "tc_1"], 2, "not both"),
            (["--approve", "tc_9"], 2, "pending: tc_1"),
            (["--approve", "tc_1", "--reject", "tc_1"], 2, "both approved and rejected"),
            (["some words"], 2, "exactly one open question"),
            (["--accept"], 4, "nothing to accept"),
        ]
        refused(person, paused["checkpoint_id"], bad)
        assert person.lines("log.txt") == []
        asks = person.resumed(paused, "--approve", "tc_1", expect=10)
        refused(
            person,
            asks["checkpoint_id"],
            [(["--approve-all"], 4, "no call is pending"), (["--approve", "tc_1"], 4, "")],
        )
        refused(
            person, paused["checkpoint_id"], [(["--approve", "tc_1"], 4, asks["checkpoint_id"])]
        )
        assert person.resumed(asks, "go on", expect=0)["state"] == "succeeded"
        refused(
            person,
            asks["task_id"],
            [(["  "], 2, "a text for its agent stands alone"), ([], 4, "nothing to resume")],
        )
        refused(person, "zzzz", [([], 3, "")])
        assert person.lines("log.txt") == ["ran"]


def refused(person: Desk, name: str, cases: list[tuple[list[str], int, str]]) -> None:
    """Insist that words are refused with a code and a sentence."""
    for words, code, sentence in cases:
        done = person.adjourn("resume", name, *words, expect=code)
        assert sentence in done.err, (words, done.err)


def test_of_two_who_resume_at_once_one_wins_and_the_tool_runs_once(tmp_path: Path) -> None:
    """Row 20 of part 2."""
    with desk(tmp_path, use(command("echo ran >> log.txt; sleep 0.2", "tc_1")), finish()) as person:
        paused = person.agent_run(expect=10)
        done: list[Done] = []

        def resume() -> None:
            done.append(
                person.adjourn("-c", paused["checkpoint_id"], "--approve", "tc_1", expect=None)
            )

        people = [threading.Thread(target=resume) for _ in range(4)]
        for one in people:
            one.start()
        for one in people:
            one.join()
        assert sorted(each.code for each in done) == [0, 4, 4, 4]
        assert person.lines("log.txt") == ["ran"]
        assert person.state(paused["task_id"]) == "succeeded"


def test_what_the_policy_says_of_each_call_is_followed(tmp_path: Path) -> None:
    """A-R69 A-R70 A-R71 A-R79.

    Auto runs, prompt pauses, never has to be named; --approve-all does not cover it.
    """
    allow(tmp_path, 'tool = "run_command"\nargs = ["echo", "**"]')
    forbid(tmp_path, "rm")
    calls = (
        command("echo fine", "auto"),
        command("uname", "ask"),
        command("rm precious.txt", "never"),
    )
    with desk(tmp_path, use(command("echo first", "first")), use(*calls), finish()) as person:
        (tmp_path / "precious.txt").write_text("keep me")
        paused = person.agent_run(expect=10)
        assert person.results() == {"first": "first"}
        assert [call["id"] for call in paused["pause_reason"]["pending_tool_calls"]] == [
            "ask",
            "never",
        ]
        left = person.resumed(paused, "--approve-all", expect=10)
        assert [call["id"] for call in left["pause_reason"]["pending_tool_calls"]] == ["never"]
        person.resumed(left, "--reject", "never", expect=0)
        assert (tmp_path / "precious.txt").exists()
    assert person.results() | {"ask": ""} == {
        "first": "first",
        "auto": "fine",
        "ask": "",
        "never": "TOOL_CALL_REJECTED",
    }


def test_the_hint_approves_what_it_may_and_rejects_what_the_policy_never_allows(
    tmp_path: Path,
) -> None:
    """A-R29: run as it is printed."""
    forbid(tmp_path, "rm")
    calls = (command("touch made.txt", "ask"), command("rm precious.txt", "never"))
    with desk(tmp_path, use(*calls), finish()) as person:
        (tmp_path / "precious.txt").write_text("keep me")
        person.as_told(person.agent_run(expect=10), expect=0)
        assert (tmp_path / "precious.txt").exists()
        assert (tmp_path / "made.txt").exists()


def test_never_can_be_turned_down_at_once_also_without_the_flag(tmp_path: Path) -> None:
    """A-R71, and rows 10 and 26 of part 2."""
    forbid(tmp_path, "rm", never="reject")
    with desk(tmp_path, use(command("rm precious.txt", "never")), say("I may not.")) as person:
        (tmp_path / "precious.txt").write_text("keep me")
        assert person.json("run", "tidy up", expect=0)["final_message"] == "I may not."
        assert (tmp_path / "precious.txt").exists()
    # A-R44, part 2 row 39: no rule, and no path
    assert person.results()["never"] == "TOOL_CALL_REJECTED\nyour policy does not allow this"


def test_a_policy_that_became_stricter_while_the_task_waited_counts(tmp_path: Path) -> None:
    """Row 1 of part 2: a resume is never weaker, and a stricter policy asks again."""
    with desk(tmp_path, use(command("touch done.txt", "tc_1")), finish()) as person:
        paused = person.agent_run(expect=10)
        forbid(tmp_path, "touch")
        again = person.resumed(paused, "--approve", "tc_1", expect=10)
        (call,) = again["pause_reason"]["pending_tool_calls"]
        assert not (tmp_path / "done.txt").exists()
        person.resumed(again, "--approve", call["id"], "--override", "it must", expect=0)
        assert (tmp_path / "done.txt").exists()


def test_a_policy_that_became_weaker_while_the_task_waited_does_not_count(tmp_path: Path) -> None:
    """Row 1 of part 2."""
    rule(tmp_path, 'tool = "run_command"\naction = "prompt"')
    with desk(
        tmp_path, use(command("true", "a")), use(command("touch done.txt", "b")), finish()
    ) as person:
        paused = person.agent_run(expect=10)
        allow(tmp_path, 'tool = "run_command"')
        again = person.resumed(paused, "--approve", "a", expect=10)
        assert [call["id"] for call in again["pause_reason"]["pending_tool_calls"]] == ["b"]
        assert not (tmp_path / "done.txt").exists()


def test_a_directory_is_open_while_the_policy_says_so_and_shut_when_it_does_not_any_more(
    tmp_path: Path,
) -> None:
    """Row 1 of part 2, for paths outside of the workspace.

    What got stricter counts, what got weaker does not.
    """
    shelf, late = tmp_path / "shelf", tmp_path / "late"
    for place in (shelf, late, tmp_path / "work"):
        place.mkdir()
        (place / "notes.txt").write_text("remember the milk")
    looks = [
        ToolUse(name="read_file", arguments={"path": f"{place}/notes.txt"}, id=place.name)
        for place in (shelf, late)
    ]
    write = ToolUse(
        name="write_file", arguments={"path": f"{shelf}/new.txt", "content": "bread"}, id="write"
    )
    open_up = 'directories = ["{}"]\n'.format
    rule(tmp_path, 'tool = "run_command"\naction = "prompt"', head=open_up(shelf))
    with desk(tmp_path / "work", use(*looks), use(write), use(looks[1], write), finish()) as person:
        person.environment["XDG_CONFIG_HOME"] = str(tmp_path / ".config")
        paused = person.agent_run(expect=10)
        assert person.results()["shelf"] == "remember the milk"
        assert "outside of the workspace" in person.results()["late"]
        rule(tmp_path, 'tool = "run_command"\naction = "prompt"', head=open_up(late))
        person.resumed(paused, "--approve-all", expect=0)
        refused = [message["content"] for message in person.sent() if message["role"] == "tool"][2:]
    assert all("outside of the workspace" in words for words in refused), refused
    assert not (shelf / "new.txt").exists()


def rule(place: Path, text: str, *, head: str = "") -> None:
    """Write the user's policy."""
    path = place / ".config" / "adjourn" / "policy.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f"{head}[[rule]]\n{text}\n" + (path.read_text() if path.exists() and not head else "")
    )


def allow(place: Path, text: str) -> None:
    """Let calls pass."""
    (place / ".config" / "adjourn" / "policy.toml").unlink(missing_ok=True)
    rule(place, f'{text}\naction = "auto"')


def forbid(place: Path, program: str, *, never: str | None = None) -> None:
    """Forbid a program."""
    head = f'never = "{never}"\n' if never else ""
    rule(place, f'tool = "run_command"\nargs = ["{program}", "**"]\naction = "never"', head=head)
