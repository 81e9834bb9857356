"""The parts of the Claude Code runner that need no process.

Command lines, the stream, batches, questions, sessions.
"""

import os
from pathlib import Path
from uuid import uuid4

import msgspec
import pytest

from adjourn.core.edit.argument_schema import problems, require_schema
from adjourn.core.errors import AdjournError, CannotResume, Misuse
from adjourn.runners.claude import options, session
from adjourn.runners.claude.check import installed_version
from adjourn.runners.claude.fingerprint import (
    CWD,
    arguments_in,
    editable,
    fingerprint,
    input_of,
    reads_only,
)
from adjourn.runners.claude.options import (
    ClaudeSetup,
    plain_ref,
    read_options,
    resume_argv,
    start_argv,
    version_of,
)
from adjourn.runners.claude.protocol import (
    Began,
    Called,
    Result,
    Returned,
    Said,
    Stopped,
    events_of,
)
from adjourn.runners.claude.questions import AskedQuestion, Option, questions_in
from adjourn.runners.claude.turns import LOOK, Turns
from adjourn.runners.claude.usage import Used, used_since
from adjourn.runners.hook import HookRequest

# The same in every process that collects the tests
SESSION = "0f6c0c1e-5d8a-4a57-9c37-3f4f0a3e7b10"
HOSTILE = [
    "",
    "--continue",
    "-c",
    "last",
    "../../etc/passwd",
    f"{SESSION} --continue",
    SESSION.upper(),
    f"{{{SESSION}}}",
    f"{SESSION}\n",
]


@pytest.mark.parametrize("ref", HOSTILE)
# D-R19, D-R24: another provider's ref, or an option
def test_a_ref_that_is_no_plain_id_is_never_passed_on(ref: str) -> None:
    with pytest.raises(CannotResume):
        plain_ref(ref)
    with pytest.raises(CannotResume):
        resume_argv(ClaudeSetup(), ref=f"/tmp/{ref}.jsonl", prompt=None, hook="h")


def test_a_resume_says_all_again_and_names_the_session_in_one_word() -> None:  # D-R22, D-R23
    kept = ClaudeSetup(program="/opt/claude", arguments=("--add-dir", "x"), model="opus")
    start = start_argv(kept, session=SESSION, prompt="--help me", hook="h")
    resume = resume_argv(kept, ref=SESSION, prompt=None, hook="h")
    assert start[:-3] == resume[:-1]
    assert start[-3:] == [f"--session-id={SESSION}", "--", "--help me"]
    assert resume[-1] == f"--resume={SESSION}"
    assert start[start.index("--permission-mode") + 1] == "dontAsk"


def test_a_prompt_that_no_argument_can_hold_goes_another_way() -> None:
    argv = start_argv(ClaudeSetup(), session=SESSION, prompt="x" * 200_000, hook="h")
    assert max(map(len, argv)) < 10_000
    assert not options.fits_a_word("é" * 60_000)


@pytest.mark.parametrize(
    "words",
    [
        "-c",
        "-pc",
        "-r",
        "--continue",
        "--resume=x",
        "--bare",
        "--safe-mode",
        "--",
        "--settings x",
        "--cloud",
    ],
)
def test_what_would_take_the_gate_away_is_refused(words: str) -> None:
    with pytest.raises(Misuse):
        read_options({"arguments": words}, {})


def test_unknown_options_and_open_quotes_are_refused() -> None:
    for given in ({"colour": "red"}, {"arguments": "'"}, {"trust-project": "maybe"}):
        with pytest.raises(Misuse):
            read_options(given, {})
    assert read_options({}, {"ADJOURN_CLAUDE": "/opt/claude"}).program == "/opt/claude"


def test_nothing_of_an_outer_session_is_handed_down() -> None:
    inherited = {
        "CLAUDECODE": "1",
        "CLAUDE_CODE_SAFE_MODE": "1",
        "CLAUDE_CODE_RESUME_FROM_SESSION": "x",
        "HOME": "/h",
    }
    assert options.environment(options.ClaudeSetup(trust_project=True), inherited) == {
        "HOME": "/h",
        "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
    }


@pytest.mark.parametrize(
    ("text", "version"),
    [("2.1.325 (Claude Code)\n", (2, 1, 325)), ("claude", ()), ("", ()), ("2.1.x", ())],
)
def test_a_version_is_read_or_unknown(text: str, version: tuple[int, ...]) -> None:
    assert version_of(text) == version


def test_a_program_that_is_another_is_refused() -> None:
    with pytest.raises(AdjournError, match=r"2\.1\.89 or newer"):
        installed_version(["/bin/echo"])
    with pytest.raises(AdjournError, match="cannot be started"):
        installed_version(["/nonexistent"])


# --- the stream -----------------------------------------------------------------------------------


def line(**what: object) -> bytes:
    return msgspec.json.encode({"session_id": SESSION, "parent_tool_use_id": None, **what})


def called(
    name: str, *, message: str = "m1", stop: str | None = None, parent: str | None = None
) -> bytes:
    block = {"type": "tool_use", "id": name, "name": "Bash", "input": {"command": name}}
    told = {"id": message, "role": "assistant", "content": [block], "stop_reason": stop}
    return line(type="assistant", message=told, parent_tool_use_id=parent)


def streamed(kind: str, **what: object) -> bytes:
    return line(type="stream_event", event={"type": kind, **what})


@pytest.mark.parametrize(
    "noise",
    [
        b"",
        b"hello",
        b"[]",
        b"7",
        b"{",
        b'{"type":"assistant","message":7}',
        b"\xff",
        b'{"type":"new"}',
    ],
)
def test_what_is_no_event_tells_nothing(noise: bytes) -> None:
    assert events_of(noise) == []


def test_events_are_read_as_they_are() -> None:
    assert events_of(streamed("message_start", message={"id": "m1"})) == [Began("m1")]
    assert events_of(streamed("message_stop")) == [Stopped()]
    assert events_of(called("A")) == [Called("m1", "A", "Bash", {"command": "A"}, is_whole=False)]
    text = {"id": "m1", "content": [{"type": "text", "text": "hi"}]}
    assert events_of(line(type="assistant", message=text)) == [Said("hi")]
    block = {"type": "tool_result", "tool_use_id": "A", "content": "made", "is_error": False}
    assert events_of(line(type="user", message={"content": [block]})) == [
        Returned("A", is_error=False, content=b'"made"')
    ]


def test_what_a_subagent_calls_is_not_a_call_of_the_message() -> None:
    assert events_of(called("S", parent="toolu_T")) == []


def test_success_is_only_what_says_so_in_every_field() -> None:
    good = Result(subtype="success", terminal_reason="completed")
    assert good.is_success
    for bad in (
        Result(subtype="success", is_error=True, terminal_reason="api_error"),
        Result(subtype="error_max_turns"),
        Result(subtype="success", terminal_reason="hook_stopped"),
        Result(subtype="success", stop_reason="tool_deferred", terminal_reason="tool_deferred"),
    ):
        assert not bad.is_success


# --- batches --------------------------------------------------------------------------------------


def heard(*lines: bytes) -> Turns:
    turns = Turns()
    for each in lines:
        for event in events_of(each):
            turns.hear(event)
    return turns


def test_a_message_that_streams_is_whole_at_its_stop_and_not_before() -> None:  # trap 2
    lines = [streamed("message_start", message={"id": "m1"}), called("A"), called("B")]
    turn = heard(*lines).turn_of("A")
    assert turn is not None
    assert turn.rest() == float("inf")
    whole = heard(*lines, streamed("message_stop")).turn_of("A")
    assert whole is not None
    assert whole.rest() == 0
    assert [each.call for each in whole.calls] == ["A", "B"]


# Trap 1
def test_a_message_that_does_not_stream_is_whole_when_the_sessions_file_has_it(
    tmp_path: Path,
) -> None:
    told = [called("A", stop="tool_use"), called("B", stop="tool_use")]
    turns = heard(*told)
    turn = turns.turn_of("B")
    assert turn is not None
    assert turn.rest() == LOOK
    file = tmp_path / f"{SESSION}.jsonl"
    blocks = [{"type": "tool_use", "id": name, "name": "Bash", "input": {}} for name in "ABC"]
    whole = line(
        type="assistant", message={"id": "m1", "content": blocks, "stop_reason": "tool_use"}
    )
    for content, known in ((b"", 0), (whole[:-9], 0), (told[0], 1), (whole, 3)):
        file.write_bytes(b'{"type":"user"}\n' + content)
        calls = session.calls_of("m1", [str(file)])
        assert len(calls) == known
        turns.complete(turn, calls)
        assert turn.is_stopped is (known == 3)
    assert [each.call for each in turn.calls] == ["A", "B", "C"]
    assert turns.turn_of("C") is turn


def test_a_call_that_comes_after_its_message_was_judged_never_counts() -> None:
    turns = heard(called("A", stop="tool_use"))
    turn = turns.turn_of("A")
    assert turn is not None
    turns.complete(turn, turn.calls)
    (late,) = events_of(called("B", stop="tool_use"))
    turns.hear(late)
    other = turns.turn_of("B")
    assert other is not None
    assert other.is_abandoned
    assert [each.call for each in turn.calls] == ["A"]


def test_the_name_of_a_call_means_nothing_in_the_next_message() -> None:
    turns = Turns()
    for event in (
        Began("msg_1"),
        Called("msg_1", "call_0", "Read", {}, is_whole=False),
        Stopped(),
        Began("msg_2"),
    ):
        turns.hear(event)
    assert turns.turn_of("call_0") is None
    turns.hear(Called("msg_2", "call_0", "Bash", {}, is_whole=False))
    turn = turns.turn_of("call_0")
    assert turn is not None
    assert [called.tool for called in turn.calls] == ["Bash"]


def test_two_calls_of_one_message_that_go_by_one_name_never_count() -> None:
    turns = Turns()
    turns.hear(Began("msg_1"))
    for tool in ("Read", "Bash"):
        turns.hear(Called("msg_1", "call_0", tool, {}, is_whole=False))
    turns.hear(Stopped())
    turn = turns.turn_of("call_0")
    assert turn is not None
    assert turn.is_abandoned


def test_a_message_that_broke_off_never_counts() -> None:
    turns = heard(
        streamed("message_start", message={"id": "m1"}),
        called("A"),
        streamed("message_start", message={"id": "m2"}),
    )
    turn = turns.turn_of("A")
    assert turn is not None
    assert turn.is_abandoned


def test_what_a_run_used_is_told_by_the_account_or_else_by_the_messages() -> None:
    def spoken(name: str) -> bytes:
        usage = {"input_tokens": 100, "output_tokens": 10, "cache_read_input_tokens": 5}
        return line(type="assistant", message={"id": name, "usage": usage, "content": []}) + b"\n"

    def account(cost: float, tokens: int) -> bytes:
        models = {
            "opus": {"inputTokens": tokens, "outputTokens": 10},
            "haiku": {"inputTokens": 1, "cacheReadInputTokens": 1},
        }
        return line(type="cost-state", totalCostUSD=cost, modelUsage=models) + b"\n"

    first = spoken("m1") + spoken("m1") + account(0.5, 200)
    assert used_since(b"", first) == Used(
        input_tokens=202, cached_input_tokens=5, output_tokens=10, cost=0.5
    )
    killed = first + spoken("m2") + spoken("m3")[:-20] + b"\n"
    assert used_since(first, killed) == Used(
        input_tokens=105, cached_input_tokens=5, output_tokens=10, cost=None
    )
    assert used_since(first, killed + account(0.75, 230)) == Used(
        input_tokens=105, cached_input_tokens=5, output_tokens=10, cost=0.25
    )
    assert used_since(first, first) == used_since(b"", b"") == Used()


# --- calls, questions, sessions -------------------------------------------------------------------


def request(**what: object) -> HookRequest:
    told = {
        "session_id": SESSION,
        "cwd": "/w",
        "tool_name": "Bash",
        "tool_input": {"command": "ls"},
        "tool_use_id": "A",
    }
    return msgspec.convert(told | what, HookRequest)


def test_calls_are_the_same_by_tool_input_and_directory_whatever_they_are_called() -> None:
    one = fingerprint(request(), workspace="/w")
    assert one == fingerprint(request(tool_use_id="B"), workspace="/w")
    others = [request(cwd="/x"), request(tool_input={"command": "ls "}), request(tool_name="Shell")]
    assert one not in {fingerprint(other, workspace="/w") for other in others}


def test_a_directory_that_is_not_the_workspace_is_shown_and_not_run() -> None:
    shown = arguments_in(request(cwd="/elsewhere"), workspace="/w")
    assert shown[CWD] == "/elsewhere"
    assert input_of(msgspec.json.encode({"tool": "Bash", "arguments": shown})) == {"command": "ls"}


def test_a_person_may_change_what_is_there_and_nothing_else() -> None:
    shown = arguments_in(
        request(cwd="/elsewhere", tool_input={"command": "ls", "timeout": 5, "why": None}),
        workspace="/w",
    )
    schema = msgspec.json.decode(editable(shown))
    require_schema(schema)
    assert list(problems(shown, schema)) == []
    assert list(problems(shown | {"command": "ls -l"}, schema)) == []
    for edit in ({"command": 7}, {CWD: "/w"}, {"more": "x"}):
        assert list(problems(shown | edit, schema)) != []


def test_an_answer_is_a_number_a_label_or_words() -> None:
    asked = AskedQuestion("Which?", options=[Option("Red"), Option("Blue", "the sky")])
    assert [asked.meaning(reply) for reply in ("1", " blue ", "3", "green")] == [
        "Red",
        "Blue",
        "3",
        "green",
    ]
    several = AskedQuestion("Which?", multi_select=True, options=asked.options)
    assert [several.meaning(reply) for reply in ("1, blue", "1, green")] == [
        "Red, Blue",
        "1, green",
    ]
    assert "2. Blue -- the sky" in asked.prompt()


@pytest.mark.parametrize("arguments", [{}, {"questions": 7}, {"questions": [{}]}])
def test_what_is_no_question_is_refused(arguments: dict[str, object]) -> None:
    with pytest.raises(Misuse):
        questions_in(arguments)


def test_a_session_is_resumable_when_what_the_person_said_is_in_it(tmp_path: Path) -> None:  # D-R37
    said = msgspec.json.encode(
        {"type": "user", "sessionId": SESSION, "message": {"content": "do it"}}
    )
    assert session.is_resumable(SESSION, b'{"type":"queue"}\n' + said + b'\n{"type":"assi')
    for broken in (
        b"",
        b'{"type":"queue"}\n',
        said[:-5],
        said.replace(SESSION.encode(), str(uuid4()).encode()),
    ):
        assert not session.is_resumable(SESSION, broken)
    place = tmp_path / ".claude" / "projects" / "-w"
    place.mkdir(parents=True)
    (place / f"{SESSION}.jsonl").write_bytes(said)
    assert session.read(SESSION, session.files_of(SESSION, {"HOME": str(tmp_path)})) == said
    assert (
        session.files_of(SESSION, {"HOME": str(tmp_path), "CLAUDE_CONFIG_DIR": str(tmp_path / "x")})
        == []
    )


def test_what_stands_in_the_place_of_a_session_and_is_no_file_is_no_session(tmp_path: Path) -> None:
    """A link that leads nowhere, a directory, a pipe that nobody writes to.

    The copy in the store takes their place.
    """
    for name in ("-link", "-directory", "-pipe"):
        (tmp_path / ".claude" / "projects" / name).mkdir(parents=True)
    link, directory, pipe = (
        tmp_path / ".claude" / "projects" / name / f"{SESSION}.jsonl"
        for name in ("-link", "-directory", "-pipe")
    )
    link.symlink_to("/nowhere")
    directory.mkdir()
    os.mkfifo(pipe)
    assert session.read(SESSION, session.files_of(SESSION, {"HOME": str(tmp_path)})) is None


def _reads(place: Path, tool: str, **given: object) -> bool:
    asked = HookRequest(
        session_id=SESSION, cwd=str(place), tool_name=tool, tool_input=given, tool_use_id="toolu_1"
    )
    return reads_only(asked, workspace=str(place))


def test_only_what_reads_inside_the_workspace_passes_without_a_rule(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "door").symlink_to("/etc")
    assert _reads(work, "Read", file_path=str(work / "a.txt"))
    assert _reads(work, "Grep", pattern="^/etc")
    assert _reads(work, "Glob", pattern="**/*.py")
    assert not _reads(work, "Read", file_path="/etc/passwd")
    assert not _reads(work, "Read", file_path=str(work / "door" / "passwd"))
    assert not _reads(work, "Read", file_path=f"{work}-other/a.txt")
    assert not _reads(work, "Glob", pattern="/etc/*")
    assert not _reads(work, "Grep", pattern="x", path="../")
    for elsewhere in (
        "~",
        "~/a.txt",
        f" {tmp_path}",
        f"\t{tmp_path}",
        f"\u00a0{tmp_path} ",
        f"\ufeff{tmp_path}",
        " ~",
        "\ufeff ~",
    ):
        assert not _reads(work, "Grep", pattern="x", path=elsewhere)
        assert not _reads(work, "Glob", pattern="*", path=elsewhere)
    assert not _reads(work, "Read", file_path=7)
    assert not _reads(work, "Bash", command="ls")
