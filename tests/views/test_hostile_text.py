"""Whatever others write, a view lets no control character through, and roles only colour."""

from collections.abc import Iterable, Iterator

import pytest
from msgspec.structs import replace

from adjourn.core.agent.calls import SessionCheck
from adjourn.core.agent.transcript import Assistant, Message, Tally, ToolCall, ToolResult, User
from adjourn.core.call import Command, command_body, tool_body
from adjourn.core.documents import ResumabilityDoc, WorkspaceDoc
from adjourn.core.redact import Redactor
from adjourn.core.scene import Scene
from adjourn.core.states import AskState, TaskState
from adjourn.core.text.render import WHOLE, Cut
from adjourn.core.trail.events import Happened
from adjourn.testing.values import (
    NOON,
    a_call,
    a_run,
    a_spec,
    a_task,
    an_approval,
    an_ask,
    an_event,
    settled,
)
from adjourn.views.agent import resumability_blocks
from adjourn.views.block import AgentWords, Block, Code, Commands, Fields, Line, Table
from adjourn.views.block import CommandBlock as Pasted
from adjourn.views.block import wrap as wrap_blocks
from adjourn.views.notice import notice_of
from adjourn.views.task import all_calls, history_blocks, settled_blocks, task_blocks, work_blocks
from adjourn.views.transcript import transcript_blocks
from adjourn.views.workspace import workspace_blocks
from tests.hostile import HOSTILE_WORDS

COMMANDS = Commands("adjourn", None)
CUTS = [WHOLE, Cut(limit=40, rest="adjourn show task-a --full")]
SECRET = "ghp_0123456789abcdefghijABCDEFGHIJ"  # noqa: S105 -- nobody's


def a_scene(text: str, **task: object) -> Scene:
    """Return a task every word of which is that of others."""
    command = Command(argv=("./deploy.sh", text), cwd=f"/srv/{text}", env={"A": text})
    old = a_call(number=3, body=command_body(Command(argv=("./old.sh",), cwd="/srv")))
    tool = a_call(number=2, tool="Edit", body=tool_body("Edit", {"path": text, text: [text]}))
    asks = (
        an_approval(call=1, manifest=text, replaces="ask-0"),
        an_approval("ask-b", call=2),
        an_ask("ask-c", prompt=text, choices=(text, "b")),
        settled(an_ask("ask-d"), AskState.ANSWERED, reply=text),
    )
    return Scene(
        task=replace(a_task(state=TaskState.WAITING, runs=1, message=text), **task),
        run=a_run(message=text, checkpoint_id="cp"),
        asks=asks,
        calls={1: a_call(body=command_body(command)), 2: tool},
        replaced={"ask-a": old},
        originals={1: old.body},
    )


def all_views(text: str, cut: Cut) -> Iterator[list[Block]]:
    """Lay out everything that can be shown of a task."""
    scene = a_scene(text)
    spec = a_spec(argv=("sh", text), workspace=text)
    for state in TaskState:
        task = replace(scene.task, state=state, spec=spec)
        yield task_blocks(replace(scene, task=task), COMMANDS, now=NOON, cut=cut)
    yield work_blocks(scene, cut=cut)
    yield work_blocks(a_scene(text, spec=a_spec(prompt=text, plan=text)), cut=cut)
    yield settled_blocks(scene, cut=cut)
    found = [(call, scene.originals[1]) for call in scene.calls.values()]
    yield all_calls(found, not_made=(), cut=cut)
    unmade = replace(scene, all_calls=tuple(scene.calls.values()), not_made=frozenset({1}))
    ended = replace(scene.task, state=TaskState.SUCCEEDED)
    yield task_blocks(replace(unmade, task=ended), COMMANDS, now=NOON, cut=cut)
    yield history_blocks([an_event(facts={"why": text})], shows_all=True)
    messages: list[Message] = [
        User(text=text),
        Assistant(text=text, model=text, tool_calls=(ToolCall(id=text, name=text, arguments={}),)),
        ToolResult(tool_call_id=text, name=text, text=text),
    ]
    yield transcript_blocks(messages, Tally(messages), cut=cut)
    yield workspace_blocks(
        WorkspaceDoc(
            head_then=None,
            head_now="abc",
            ref_then=text,
            ref_now=text,
            changed=(text,),
            changed_count=1,
            looked_at=1,
            is_whole=True,
        )
    )
    looks = (SessionCheck(thing="session", fine=False, says=text),)
    yield resumability_blocks(ResumabilityDoc(can_be_resumed=False, looks=looks, way_out="x"))


def texts_in(blocks: Iterable[Block]) -> Iterator[str]:
    """Return the texts of blocks as a view made them, before anything else could mend them."""
    for block in blocks:
        match block:
            case Line(spans=spans):
                yield from (span.text for span in spans)
            case Table(head=head, rows=rows):
                yield from (cell for row in (head, *rows) for cell in row)
            case Fields(entries=entries):
                yield from (text for name, span in entries for text in (name, span.text))
            case Code(lines=lines):
                yield from lines
            case Pasted(head=head, command=command):
                yield from (head, command)
            case AgentWords():
                pass  # broken into rows later, and rendered there


@pytest.mark.parametrize("cut", CUTS, ids=["all", "cut"])
def test_no_view_lets_a_character_through_that_cannot_be_seen(cut: Cut) -> None:
    for text in HOSTILE_WORDS:
        if len(text) > 5_000 or any("\ud800" <= char <= "\udfff" for char in text):
            continue
        for blocks in all_views(text, cut):
            # Between people a joiner is seen: it makes one picture of them
            texts = [*texts_in(blocks), *(row.text for row in wrap_blocks(blocks, 60))]
            seen = [each.replace("👩\u200d💻", "") for each in texts]
            assert [each for each in seen if not each.isprintable()] == []


def test_no_field_of_a_notification_holds_a_secret() -> None:
    words = f"push with {SECRET}"
    scene = a_scene(words, spec=a_spec(prompt=words, argv=("x", words)))
    redactor = Redactor()
    for kind in ("run_waiting", "run_failed", "run_completed"):
        happened = Happened(place=1, event=an_event(kind=kind, facts={"run": 1}), seal=bytes(32))
        notice = notice_of(happened, redactor.scene(scene), ask=None, commands=COMMANDS, now=NOON)
        assert SECRET not in str(redactor.document(notice))


def test_how_a_task_stands_in_a_log_of_others_holds_no_secret() -> None:
    scene = a_scene(f"I use {SECRET} now", state=TaskState.PAUSED)
    clean = Redactor().scene(scene)
    rows = wrap_blocks(task_blocks(clean, COMMANDS, now=NOON, cut=WHOLE), None)
    assert not any(SECRET in row.text for row in rows)
