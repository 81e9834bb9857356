"""The HTTP API: the documents of `--output json`, and every decision, over one controller."""

import asyncio
import os
import re
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from hashlib import sha256
from importlib.metadata import version
from typing import TypeVar, assert_never
from urllib.parse import urlencode

import msgspec
from starlette.responses import Response, StreamingResponse

from adjourn.controller.controller import Controller
from adjourn.controller.decisions import ENOUGH, require_named
from adjourn.controller.transaction import call_asked_about
from adjourn.core.ask import (
    ApprovalAsk,
    Ask,
    Principal,
    QuestionAsk,
    Reply,
    UncertainAsk,
    Verb,
)
from adjourn.core.call import arguments_of, slot_of
from adjourn.core.documents import AskDoc, Manifest, event_doc
from adjourn.core.errors import (
    AdjournError,
    AlreadySettled,
    Conflict,
    Misuse,
    NotAllowed,
    NotFound,
    NothingRecorded,
)
from adjourn.core.resumption import PLAIN, Resumption
from adjourn.core.states import AskState, TaskState
from adjourn.core.task import Spec, Task, number_of_run, run_id, task_of_run
from adjourn.core.trail.events import Happened
from adjourn.ports.store import View
from adjourn.settings.config import wants_pauses
from adjourn.supervision.wait import interrupt_orphan, is_settled
from adjourn.supervision.workspace_notes import require_workspace
from adjourn.system.files import open_plain, run_directory
from adjourn.web.api_types import (
    Answer,
    AnyReply,
    Approve,
    ApproveCall,
    AsksQuery,
    AuditQuery,
    EventsPage,
    EventsQuery,
    Health,
    InboxPage,
    OneAsk,
    OutputQuery,
    Reject,
    RejectCall,
    Replies,
    Resume,
    Settle,
    Snooze,
    StartTask,
    TasksPage,
    TasksQuery,
    WorkerDoc,
)
from adjourn.web.operations import PREFIX, ApiCall, Operation, given, preferred_wait
from adjourn.web.problems import HttpRefusal, Settled
from adjourn.web.site import Site
from adjourn.web.who import principal_of
from adjourn.wiring import living, name_of_store
from adjourn.wiring.json_documents import (
    InboxDoc,
    RecordedDoc,
    RunsDoc,
    SnoozedDoc,
    TasksDoc,
    count_unmade,
    filtered_asks,
    inbox_doc,
    listed_asks,
    recorded_doc,
    runs_doc,
    settled_asks,
    shown_ask_doc,
    shown_task_doc,
    snoozed_doc,
    tasks_doc,
)
from adjourn.wiring.runners import command_work, find_kind, prompt_work, require_resumable, spec_of
from adjourn.wiring.scenes import gather_task

T = TypeVar("T")

_LONGEST_WAIT = 300.0  # seconds
_HEARTBEAT = 15.0
_DIGITS = 15  # of a place
_JSON = "application/json"
_STATES = {
    Verb.APPROVE: AskState.APPROVED,
    Verb.REJECT: AskState.REJECTED,
    Verb.ANSWER: AskState.ANSWERED,
}


def json_response(
    site: Site,
    document: object,
    *,
    status: int = 200,
    headers: dict[str, str] | None = None,
) -> Response:
    """Return a document as `--output json` prints it: with secrets taken out."""
    content = msgspec.json.encode(site.redactor.document(document))
    return Response(content, status, headers, _JSON)


def ask_tag(ask: AskDoc) -> str:
    """Return the ETag of an ask: it changes with whatever a screen shows of it."""
    parts = (ask.id, ask.state, ask.settled_at, ask.snoozed_until, ask.digest, ask.approvals)
    return f'"{sha256(msgspec.json.encode(parts)).hexdigest()[:32]}"'


def task_tag(view: View, task_id: str) -> str:
    """Return the ETag of a task: it changes with each of its events."""
    return f'"{view.chain_head(task_id).hex()[:32]}"'


def _next_link(path: str, query: msgspec.Struct, cursor: object) -> dict[str, str]:
    """Return the header that leads to the page behind this one."""
    if cursor is None:
        return {}
    words = urlencode(msgspec.to_builtins(query) | {"after": cursor})
    return {"Link": f'<{PREFIX}{path}?{words}>; rel="next"'}


# --- asks -----------------------------------------------------------------------------------------


async def list_asks(call: ApiCall[AsksQuery, None]) -> Response:
    """List asks: open ones oldest first, settled ones newest first."""
    query, site = call.query, call.site

    def read(controller: Controller) -> tuple[InboxDoc, str | None]:
        decisions, limit = controller.decisions, query.limit
        task, kind = _task_id(controller, query.task), given(query.kind)
        now = controller.now()
        after = given(query.after)
        if after is not None and query.state == "settled":
            if not _is_place(after):
                raise NotFound(f"no page begins after {after}", way_out=f"{PREFIX}/asks")
        elif after is not None:
            after = decisions.find_ask(after).id
        with controller.store.read() as view:
            asleep = view.count_snoozed_asks(now=now)
            cursor: str | None = None
            if query.state == "settled":
                before = int(after) if after is not None else None
                placed = settled_asks(view, before=before, limit=limit)
                cursor = str(placed[-1][0]) if len(placed) == limit else None
                asks = [
                    ask
                    for _, ask in placed
                    if kind in {None, ask.kind} and task in {None, ask.task_id}
                ]
                document = InboxDoc(
                    count=view.count_open_asks(),
                    snoozed=asleep,
                    asks=listed_asks(view, asks),
                    paused=(),
                )
                return document, cursor
            if query.state == "snoozed":
                asks = view.snoozed_asks(now=now, limit=limit)
                asks = [each for each in asks if kind in {None, each.kind}]
                asks = [each for each in asks if task in {None, each.task_id}]
            else:
                asks = filtered_asks(
                    view,
                    now=now,
                    kind=kind,
                    task=task,
                    requester=None,
                    limit=limit + 1,
                    after=after,
                )
                cursor = asks[limit - 1].id if len(asks) > limit else None
            document = inbox_doc(
                view, asks[:limit], snoozed=asleep, limit=limit, commands=site.commands
            )
        return document, cursor

    document, cursor = await site.call(read)
    page = msgspec.to_builtins(document) | {"next": cursor}
    return json_response(site, page, headers=_next_link("/asks", query, cursor))


async def show_ask(call: ApiCall[None, None]) -> Response:
    """Show one ask whole: its call with arguments and digest, and whether you may decide."""

    def read(controller: Controller) -> tuple[OneAsk, str]:
        ask = controller.decisions.find_ask(call.name())
        document = shown_ask_doc(controller, ask)
        with controller.store.read() as view:
            about = call_asked_about(view, ask)
            verb = Verb.ANSWER if isinstance(ask, QuestionAsk) else Verb.APPROVE
            why_not = (
                controller.decisions.why_not(view, ask, verb, by=call.by)
                if ask.is_open
                else f"it was {ask.state} already"
            )
        return OneAsk(
            **{key: getattr(document, key) for key in document.__struct_fields__},
            tool=about.tool if about else None,
            arguments=arguments_of(about.body) if about else None,
            you_may_decide=why_not is None,
            why_not=why_not,
        ), ask_tag(document)

    document, tag = await call.site.call(read)
    if _has_tag(call.request.headers.get("if-none-match"), tag):
        return Response(status_code=304, headers={"ETag": tag})
    return json_response(call.site, document, headers={"ETag": tag})


def _task_id(controller: Controller, name: str | msgspec.UnsetType) -> str | None:
    """Return the task that a query names, if it names one."""
    return None if isinstance(name, msgspec.UnsetType) else controller.decisions.find_task(name).id


def _is_place(text: str) -> bool:
    """Return whether a text is a place of the trail."""
    return text.isascii() and text.isdigit() and len(text) <= _DIGITS


def _has_tag(header: str | None, tag: str) -> bool:
    given = [each.strip().removeprefix("W/") for each in (header or "").split(",")]
    return tag in given or (header or "").strip() == "*"


async def reply(call: ApiCall[None, AnyReply]) -> Response:
    """Reply to an ask. The first reply wins; the same reply again gets the same receipt."""
    wanted, if_match = call.body, call.request.headers.get("if-match")

    def record(controller: Controller) -> tuple[RecordedDoc, str]:
        ask = controller.decisions.find_ask(call.name())
        if if_match is not None:
            tag = ask_tag(shown_ask_doc(controller, ask))
            if not _has_tag(if_match, tag):
                raise HttpRefusal(
                    412,
                    "changed",
                    f"ask {ask.id} is not as it was when it was read",
                    way_out=f"GET {PREFIX}/asks/{ask.id}",
                    headers={"ETag": tag},
                )
        document = _recorded(controller, [_reply_to(ask, wanted)], by=call.by)
        return document, ask_tag(document.asks[0])

    document, tag = await call.site.call(record)
    return json_response(call.site, document, headers={"ETag": tag})


async def reply_to_several(call: ApiCall[None, Replies]) -> Response:
    """Reply to several asks, all or none; if one does not fit, each is told."""

    def record(controller: Controller) -> RecordedDoc:
        found = controller.decisions.find_asks([each.ask for each in call.body.replies])
        if len(found) != len(call.body.replies):
            raise Conflict("one ask is named twice", way_out="reply to each ask once")
        replies: list[Reply] = []
        for name, wanted in zip(found, call.body.replies, strict=True):
            try:
                replies.append(_reply_to(controller.decisions.find_ask(name), wanted))
            except NotFound:
                if len(found) == 1:
                    raise
                # `decide` says of each what is wrong with it
                replies.append(Reply(ask_id=name, verb=_verb_of(wanted)))
        return _recorded(controller, replies, by=call.by)

    return json_response(call.site, await call.site.call(record))


def _verb_of(wanted: AnyReply) -> Verb:
    match wanted:
        case Approve():
            return Verb.APPROVE
        case Reject():
            return Verb.REJECT
        case Answer():
            return Verb.ANSWER
        case _:
            assert_never(wanted)


def _reply_to(ask: Ask, wanted: AnyReply) -> Reply:
    """Return a reply that fits the kind of its ask. It depends on the state: else it conflicts."""
    match ask:
        case ApprovalAsk() if isinstance(wanted, Approve):
            edited = msgspec.json.encode(wanted.edited) if wanted.edited is not None else None
            return Reply(
                ask_id=ask.id,
                verb=Verb.APPROVE,
                text=wanted.value,
                digest=wanted.digest,
                edited=edited,
                comment=wanted.comment,
            )
        case ApprovalAsk() if isinstance(wanted, Reject):
            return Reply(ask_id=ask.id, verb=Verb.REJECT, text=wanted.reason)
        case QuestionAsk() if isinstance(wanted, Answer):
            return Reply(ask_id=ask.id, verb=Verb.ANSWER, text=wanted.text)
        case _:
            verb = "settle its call" if isinstance(ask, UncertainAsk) else "use another verb"
            raise Conflict(
                f"{ask.id} is {ask.kind.noun}: `{_verb_of(wanted)}` cannot settle it",
                way_out=f"{verb}: GET {PREFIX}/asks/{ask.id}",
            )


def _recorded(controller: Controller, replies: list[Reply], *, by: Principal) -> RecordedDoc:
    """Record replies, and record refusals in the trail."""
    decisions = controller.decisions
    try:
        return recorded_doc(decisions, decisions.decide(replies, by=by))
    except AlreadySettled as error:
        ask = decisions.find_ask(replies[0].ask_id)
        if _is_the_same(ask, replies[0], by=by):
            return recorded_doc(decisions, [ask])
        raise Settled.of(error, ask) from None
    except Misuse as error:
        # The body had the right form: whether it fits depends on the ask
        raise Conflict(error.sentence, way_out=error.way_out) from None
    except (NotAllowed, NothingRecorded) as error:
        items = error.items if isinstance(error, NothingRecorded) else ()
        refused = [item.ask_id for item in items if isinstance(item.error, NotAllowed)]
        for ask_id in [replies[0].ask_id] if isinstance(error, NotAllowed) else refused:
            with suppress(AdjournError):
                task_id = decisions.find_ask(ask_id).task_id
                verb = next(each.verb for each in replies if each.ask_id == ask_id)
                decisions.tell_refusal(task_id, verb=verb, why=error.why, by=by)
        raise


def _is_the_same(ask: Ask, wanted: Reply, *, by: Principal) -> bool:
    """Return whether somebody gave this very reply before: it was sent twice."""
    settled = ask.settlement
    return (
        settled is not None
        and settled.by == by.name
        and settled.state is _STATES[wanted.verb]
        and settled.reply == wanted.text
        and wanted.edited is None
    )


async def snooze(call: ApiCall[None, Snooze]) -> Response:
    """Hide an ask from the inbox until a moment; it expires when it would have expired."""
    moment = call.body.until
    until = int(moment.timestamp() * 1000) if moment is not None else None

    def record(controller: Controller) -> SnoozedDoc:
        ask = controller.decisions.find_ask(call.name())
        try:
            snoozed = controller.decisions.snooze([ask.id], until=until, by=call.by)
        except Misuse as error:  # that moment is over
            raise Conflict(error.sentence, way_out=error.way_out) from None
        return snoozed_doc(controller.decisions, snoozed)

    return json_response(call.site, await call.site.call(record))


async def settle(call: ApiCall[None, Settle]) -> Response:
    """Record whether a call ran that nobody saw end."""

    def record(controller: Controller) -> Manifest:
        task_id, number = controller.tasks.find_call(call.name())
        try:
            task = controller.tasks.settle(task_id, number, call.body.verdict, by=call.by)
        except Misuse as error:
            raise Conflict(error.sentence, way_out=error.way_out) from None
        return _manifest(controller, call.site, task)

    return json_response(call.site, await call.site.call(record))


# --- tasks ----------------------------------------------------------------------------------------


def _manifest(controller: Controller, site: Site, task: Task) -> Manifest:
    """Describe a task as `show` does."""
    whole = gather_task(controller, site.root, task, commands=site.commands, shows_all=False)
    return shown_task_doc(whole, site.commands)


async def list_tasks(call: ApiCall[TasksQuery, None]) -> Response:
    """List tasks, newest first."""
    query = call.query

    def read(controller: Controller) -> tuple[TasksDoc, str | None]:
        before, state = _task_id(controller, query.after), given(query.state)
        states = (state,) if state else ()
        with controller.store.read() as view:
            found = view.tasks(states=states, limit=query.limit + 1, before=before)
            shown = found[: query.limit]
            document = tasks_doc(shown, count_unmade(view, shown), list(view.unreadable.values()))
        return document, shown[-1].id if len(found) > query.limit else None

    document, cursor = await call.site.call(read)
    page = msgspec.to_builtins(document) | {"next": cursor}
    return json_response(call.site, page, headers=_next_link("/tasks", query, cursor))


async def start_task(call: ApiCall[None, StartTask]) -> Response:
    """Start a task. With an Idempotency-Key the same request again returns the same task."""
    wanted, site = call.body, call.site
    if (wanted.command is msgspec.UNSET) == (wanted.prompt is msgspec.UNSET):
        raise Misuse(
            "a task is a command or a prompt, exactly one", way_out='{"command": ["make"]}'
        )
    key = call.request.headers.get("idempotency-key")
    if key is not None and not re.fullmatch(r"[!-~]{1,255}", key):
        raise Misuse("an Idempotency-Key has 1 to 255 visible characters", way_out="use a UUID")

    def start(controller: Controller) -> tuple[Manifest, Task, bool]:
        controller.decisions.authorise(call.by, "start")  # before anything is started for it
        try:
            spec = _spec_of(wanted)
        except Misuse as error:  # a runner, a directory or an option that is not there
            raise Conflict(error.sentence, way_out=error.way_out) from None
        name = f"key:{key}" if key else f"once:{os.urandom(16).hex()}"
        slot = slot_of(f"api:{call.by.name}", name, 1)
        with controller.store.read() as view:
            found = view.task_in_slot(slot) if key else None
        if found is None:
            task = site.supervisors.start(
                spec.pool, slot, lambda: controller.tasks.start(spec, by=call.by, slot=slot)
            )
        else:
            task = found
            site.supervisors.launcher.adopt(task, now=controller.now())
        mine, theirs = task.spec, spec
        if (mine.argv, mine.prompt, mine.workspace) != (
            theirs.argv,
            theirs.prompt,
            theirs.workspace,
        ):
            raise Conflict(
                f"this Idempotency-Key was used for task {task.id}, which does something else",
                way_out="use another key",
            )
        return _manifest(controller, site, task), task, found is None

    document, task, is_new = await site.call(start)
    headers = {"Location": f"{PREFIX}/tasks/{task.id}"}
    return json_response(site, document, status=201 if is_new else 200, headers=headers)


def _spec_of(wanted: StartTask) -> Spec:
    is_gated = wanted.pause_on_approval
    if command := given(wanted.command):
        if not command[0]:
            raise Misuse("command begins with the name of a program", way_out='["make", "deploy"]')
        is_gated = wants_pauses() if is_gated is None else is_gated
        return spec_of(command_work(command), wanted.cwd, is_gated=is_gated)
    if not find_kind(wanted.runner).driver:
        raise Misuse(f"{wanted.runner} is no agent", way_out="runner: agent, claude or codex")
    work = prompt_work(wanted.runner, given(wanted.prompt) or "", wanted.options)
    return spec_of(work, wanted.cwd, is_gated=True if is_gated is None else is_gated)


async def show_task(call: ApiCall[None, None]) -> Response:
    """Show a task. With `Prefer: wait=N` it is answered when the task has moved.

    With If-None-Match that is any event of it; without, that it has ended or needs a person.
    """
    site, request = call.site, call.request
    known, seconds = request.headers.get("if-none-match"), preferred_wait(request)

    def read(controller: Controller) -> tuple[str, str, bool]:
        task = controller.decisions.find_task(call.name())
        with controller.store.read() as view:
            return task.id, task_tag(view, task.id), is_settled(view, view.task(task.id))

    task_id, tag, is_done = await site.call(read)
    applied: dict[str, str] = {}
    if seconds is not None:
        seconds = min(seconds, _LONGEST_WAIT)
        applied = {"Preference-Applied": f"wait={int(seconds)}"}
        loop, moved = asyncio.get_running_loop(), asyncio.Event()
        end = site.hub.subscribe(lambda _: loop.call_soon_threadsafe(moved.set))
        deadline = loop.time() + seconds
        try:
            while not (_has_not(known, tag) if known else is_done) and not site.stopping.is_set():
                moved.clear()
                _, tag, is_done = await site.call(read)
                if _has_not(known, tag) if known else is_done:
                    break
                if not await _either(moved, site.stopping, deadline - loop.time()):
                    break
        finally:
            end()
    if _has_tag(known, tag):
        return Response(status_code=304, headers={"ETag": tag, **applied})

    def show(controller: Controller) -> tuple[Manifest, str]:
        with controller.store.read() as view:
            tag, task = task_tag(view, task_id), view.task(task_id)
        return _manifest(controller, site, task), tag

    document, tag = await site.call(show)
    return json_response(site, document, headers={"ETag": tag, **applied})


def _has_not(known: str | None, tag: str) -> bool:
    return not _has_tag(known, tag)


async def _either(one: asyncio.Event, other: asyncio.Event, seconds: float) -> bool:
    """Wait until one of two things happened; return whether that was in time."""
    waits = [asyncio.create_task(each.wait()) for each in (one, other)]
    try:
        done, _ = await asyncio.wait(
            waits, timeout=max(0.0, seconds), return_when=asyncio.FIRST_COMPLETED
        )
        return bool(done)
    finally:
        for each in waits:
            each.cancel()


async def resume_task(call: ApiCall[None, Resume | None]) -> Response:
    """Go on with a task: with decisions on its pending calls, a prompt, or nothing.

    With decisions it is final: a pending call that is not named is rejected.
    """
    wanted = call.body or Resume()
    decisions, text = given(wanted.decisions) or (), given(wanted.prompt)
    if decisions and text is not None:
        raise Misuse("a resume carries decisions or a prompt, not both", way_out="leave one out")

    def resume(controller: Controller) -> Manifest:
        task = _named_task(controller, call.name())
        controller.tasks.require_newest(call.name(), task)
        if task.spec.is_driven:
            require_resumable(controller, task)
        require_workspace(controller, task)
        with controller.store.read() as view:
            asks = [ask for ask in view.open_asks_of(task.id) if isinstance(ask, ApprovalAsk)]
        digests = {
            ask.id: each.digest
            for each in decisions
            for ask in asks
            if isinstance(each, ApproveCall) and each.tool_call_id in {ask.tool_call_id, ask.id}
        }
        approved = [each for each in decisions if isinstance(each, ApproveCall)]
        rejected = [each for each in decisions if isinstance(each, RejectCall)]
        decided = Resumption(
            text=text,
            approve=tuple(each.tool_call_id for each in approved),
            reject=tuple(each.tool_call_id for each in rejected),
            reason=wanted.reason,
            digests=digests,
        )
        resumption = PLAIN if decided == PLAIN else decided
        try:
            moved = controller.tasks.resume(task.id, resumption, by=call.by, named=call.name())
        except Misuse as error:
            raise Conflict(error.sentence, way_out=error.way_out) from None
        return _manifest(controller, call.site, moved)

    return json_response(call.site, await call.site.call(resume))


def _named_task(controller: Controller, name: str) -> Task:
    """Return a task that somebody wants to change: `last` is too vague for that."""
    require_named(name)
    return controller.decisions.find_task(name, shortest=ENOUGH)


async def restart_task(call: ApiCall[None, None]) -> Response:
    """Run a task again from nothing; its history stays."""

    def restart(controller: Controller) -> Manifest:
        task = _named_task(controller, call.name())
        require_workspace(controller, task)
        moved = controller.tasks.restart(task.id, by=call.by, workspace=task.spec.workspace)
        return _manifest(controller, call.site, moved)

    return json_response(call.site, await call.site.call(restart))


async def pause_task(call: ApiCall[None, None]) -> Response:
    """Interrupt a running task. It stops soon after: GET it with `Prefer: wait`."""
    return await _stop(call, lambda controller: controller.tasks.pause)


async def cancel_task(call: ApiCall[None, None]) -> Response:
    """End a task. Its open asks are withdrawn; a process of it stops soon after."""
    return await _stop(call, lambda controller: controller.tasks.cancel)


async def _stop(
    call: ApiCall[None, None], method: Callable[[Controller], Callable[..., Task]]
) -> Response:
    def stop(controller: Controller) -> Manifest:
        task = _named_task(controller, call.name())
        stopped = method(controller)(task.id, by=call.by)
        if stopped.state is TaskState.RUNNING:
            interrupt_orphan(controller, stopped, root=call.site.root)
        return _manifest(controller, call.site, stopped)

    return json_response(call.site, await call.site.call(stop))


async def list_runs(call: ApiCall[None, None]) -> Response:
    """List the runs of a task, oldest first."""

    def read(controller: Controller) -> RunsDoc:
        task = controller.decisions.find_task(call.name())
        with controller.store.read() as view:
            return runs_doc(view, task, view.runs(task.id))

    return json_response(call.site, await call.site.call(read))


async def read_stdout(call: ApiCall[OutputQuery, None]) -> Response:
    """Return what a run printed, from an offset on, in whole lines."""
    return await _output(call, "stdout")


async def read_stderr(call: ApiCall[OutputQuery, None]) -> Response:
    """Return what a run printed as errors, from an offset on, in whole lines."""
    return await _output(call, "stderr")


async def _output(call: ApiCall[OutputQuery, None], stream: str) -> Response:
    name, query, site = call.name(), call.query, call.site

    def read(controller: Controller) -> bytes:
        task = controller.decisions.find_task(task_of_run(name))
        number = number_of_run(name) if "." in name else task.runs
        with controller.store.read() as view:
            view.run(task.id, number)
        place = run_directory(site.root, run_id(task.id, number))
        fd = open_plain(os.path.join(place, stream))
        if fd is None:
            raise NotFound(
                f"what run {task.id}.{number} printed is not here",
                way_out=f"GET {PREFIX}/tasks/{task.id}/runs",
            )
        with open(fd, "rb") as file:
            file.seek(query.offset)
            return file.read(query.limit)

    content = await site.call(read)
    # A secret that is cut in two would not be known as one: a piece ends with a line, if it can
    if len(content) == query.limit and (end := content.rfind(b"\n")) >= 0:
        content = content[: end + 1]
    text = site.redactor.text(content.decode("utf-8", "replace"))
    headers = {"X-Next-Offset": str(query.offset + len(content))}
    return Response(text, 200, headers, "text/plain; charset=utf-8")


# --- the trail ------------------------------------------------------------------------------------


async def follow_events(call: ApiCall[EventsQuery, None]) -> Response:
    """Stream what happens, as server-sent events whose ids are places of the trail.

    With Last-Event-ID, or `after`, it begins behind that place, without a gap.
    """
    site, query = call.site, call.query
    last = call.request.headers.get("last-event-id", "")
    place = int(last) if _is_place(last) else given(query.after)

    def begin(controller: Controller) -> tuple[int, str | None]:
        task = _task_id(controller, query.task)
        with controller.store.read() as view:
            return view.trail_head()[0] if place is None else place, task

    after, task = await site.call(begin)
    stream = _stream(call, after, task)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(stream, headers=headers, media_type="text/event-stream")


async def _stream(
    call: ApiCall[EventsQuery, None], after: int, task: str | None
) -> AsyncIterator[bytes]:
    site = call.site
    yield b"retry: 2000\n\n"
    async for page in site.feed.follow(after, rest=_HEARTBEAT):
        if page:
            text = b"".join(
                _event(site, each) for each in page if task in {None, each.event.task_id}
            )
            if text:
                yield text
        elif await principal_of(call.request) is None:  # the token was revoked meanwhile
            return
        else:
            yield b": still here\n\n"


def _event(site: Site, happened: Happened) -> bytes:
    document = msgspec.json.encode(site.redactor.document(event_doc(happened)))
    return b"id: %d\ndata: %b\n\n" % (happened.place, document)


async def read_audit(call: ApiCall[AuditQuery, None]) -> Response:
    """Return a page of the audit trail, oldest first."""
    query = call.query

    def read(controller: Controller) -> EventsPage:
        task = _task_id(controller, query.task)
        with controller.store.read() as view:
            rows = view.trail(after=query.after, limit=query.limit)
        kept = [row for row in rows if task is None or (row.event and row.event.task_id == task)]
        cursor = rows[-1].place if len(rows) == query.limit else None
        return EventsPage(events=tuple(map(event_doc, kept)), next=cursor)

    document = await call.site.call(read)
    headers = _next_link("/audit", query, document.next)
    return json_response(call.site, document, headers=headers)


async def show_health(call: ApiCall[None, None]) -> Response:
    """Say whether the store can be read, who is at work, and who you are."""
    site = call.site

    def read(controller: Controller) -> Health:
        with controller.store.read() as view:
            place, count = view.trail_head()[0], view.count_open_asks()
        workers = tuple(
            WorkerDoc(name=name, pid=about.pid, pool=about.pool)
            for name, about in living(site.root).items()
        )
        return Health(
            version=version("adjourn"),
            store=name_of_store(site.root),
            place=place,
            open_asks=count,
            workers=workers,
            you=call.by.name,
        )

    return json_response(site, await site.call(read))


_IF_MATCH = (("If-Match", "The ETag of the ask as you saw it; if it changed, 412."),)
_IF_NONE_MATCH = (("If-None-Match", "The ETag that you have; if it is still that, 304."),)
_PREFER = (("Prefer", "`wait=N`: answer when the task has moved, or after N seconds."),)
_KEY = (("Idempotency-Key", "The same request with the same key returns the same task."),)
_LAST = (("Last-Event-ID", "The place behind which the stream begins."),)

OPERATIONS: tuple[Operation, ...] = (
    Operation(
        method="GET",
        path="/asks",
        name="listAsks",
        summary="List asks",
        run=list_asks,
        query=AsksQuery,
        answer=InboxPage,
    ),
    Operation(
        method="GET",
        path="/asks/{id}",
        name="showAsk",
        summary="Show one ask whole",
        run=show_ask,
        answer=OneAsk,
        more=(304,),
        headers=_IF_NONE_MATCH,
    ),
    Operation(
        method="POST",
        path="/asks/{id}/reply",
        name="reply",
        summary="Approve, reject or answer",
        run=reply,
        body=AnyReply,
        answer=RecordedDoc,
        scope="approve, or answer for questions",
        more=(412,),
        headers=_IF_MATCH,
    ),
    Operation(
        method="POST",
        path="/replies",
        name="replyToSeveral",
        summary="Reply to several asks, all or none",
        run=reply_to_several,
        body=Replies,
        answer=RecordedDoc,
        scope="approve, or answer for questions",
    ),
    Operation(
        method="POST",
        path="/asks/{id}/snooze",
        name="snooze",
        summary="Hide an ask until a moment",
        run=snooze,
        body=Snooze,
        answer=SnoozedDoc,
        scope="approve",
    ),
    Operation(
        method="POST",
        path="/calls/{id}/settle",
        name="settle",
        summary="Record whether an uncertain call ran",
        run=settle,
        body=Settle,
        answer=Manifest,
        scope="approve",
    ),
    Operation(
        method="GET",
        path="/tasks",
        name="listTasks",
        summary="List tasks",
        run=list_tasks,
        query=TasksQuery,
        answer=TasksPage,
    ),
    Operation(
        method="POST",
        path="/tasks",
        name="startTask",
        summary="Start a command or an agent",
        run=start_task,
        body=StartTask,
        answer=Manifest,
        scope="request",
        status=201,
        more=(200,),
        headers=_KEY,
    ),
    Operation(
        method="GET",
        path="/tasks/{id}",
        name="showTask",
        summary="Show a task, or wait for it",
        run=show_task,
        answer=Manifest,
        more=(304,),
        headers=(*_IF_NONE_MATCH, *_PREFER),
    ),
    Operation(
        method="POST",
        path="/tasks/{id}/resume",
        name="resumeTask",
        summary="Go on with a task",
        run=resume_task,
        body=Resume,
        body_needed=False,
        answer=Manifest,
        scope="request; approve or answer if it decides",
    ),
    Operation(
        method="POST",
        path="/tasks/{id}/pause",
        name="pauseTask",
        summary="Interrupt a task",
        run=pause_task,
        answer=Manifest,
        scope="request",
    ),
    Operation(
        method="POST",
        path="/tasks/{id}/cancel",
        name="cancelTask",
        summary="End a task",
        run=cancel_task,
        answer=Manifest,
        scope="request",
    ),
    Operation(
        method="POST",
        path="/tasks/{id}/restart",
        name="restartTask",
        summary="Run a task again from nothing",
        run=restart_task,
        answer=Manifest,
        scope="request",
    ),
    Operation(
        method="GET",
        path="/tasks/{id}/runs",
        name="listRuns",
        summary="List the runs of a task",
        run=list_runs,
        answer=RunsDoc,
    ),
    Operation(
        method="GET",
        path="/runs/{id}/stdout",
        name="readStdout",
        summary="Read what a run printed",
        run=read_stdout,
        query=OutputQuery,
        media="text/plain",
    ),
    Operation(
        method="GET",
        path="/runs/{id}/stderr",
        name="readStderr",
        summary="Read what a run printed as errors",
        run=read_stderr,
        query=OutputQuery,
        media="text/plain",
    ),
    Operation(
        method="GET",
        path="/events",
        name="followEvents",
        summary="Stream what happens",
        run=follow_events,
        query=EventsQuery,
        media="text/event-stream",
        headers=_LAST,
    ),
    Operation(
        method="GET",
        path="/audit",
        name="readAudit",
        summary="Read the audit trail",
        run=read_audit,
        query=AuditQuery,
        answer=EventsPage,
    ),
    Operation(
        method="GET",
        path="/health",
        name="showHealth",
        summary="Check the server",
        run=show_health,
        answer=Health,
    ),
)
"""Every operation: one that is not here does not exist."""
