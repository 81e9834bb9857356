"""The pages: each shows what a view lays out, and changes nothing."""

import os
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any
from urllib.parse import urlencode

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from adjourn.controller.controller import Controller
from adjourn.core.agent.transcript import Tally
from adjourn.core.ask import Ask, AskKind
from adjourn.core.errors import AdjournError, AlreadySettled, NotFound, NothingRecorded
from adjourn.core.states import TaskState
from adjourn.core.task import Task, run_id
from adjourn.core.text.render import Cut, block, prose, title, visible
from adjourn.core.text.when import ago, stamp
from adjourn.core.trail.durations import time_spent, time_words
from adjourn.core.trail.events import Happened
from adjourn.ports.store import View
from adjourn.system.files import open_plain, run_directory
from adjourn.views.agent import resumability_blocks
from adjourn.views.allowance import allowance_lines
from adjourn.views.ask_row import ask_row
from adjourn.views.block import Code, Commands, Line, Span, line, lines, state_role
from adjourn.views.call import GIST
from adjourn.views.paused import paused_blocks, paused_tasks
from adjourn.views.plan import graph_block, standing_blocks
from adjourn.views.task import (
    all_calls,
    clarification_blocks,
    history_blocks,
    settled_blocks,
    task_blocks,
    work_blocks,
)
from adjourn.views.transcript import transcript_blocks
from adjourn.views.workspace import workspace_blocks
from adjourn.web.acts import act_routes
from adjourn.web.html import to_html
from adjourn.web.login import login_routes, own_passkey_host, require_login
from adjourn.web.passkey_routes import passkey_routes
from adjourn.web.problems import HttpRefusal, status_of
from adjourn.web.shown_asks import next_path, show_ask
from adjourn.web.site import Site
from adjourn.web.stores import (
    chosen_site,
    follow_all,
    key_of,
    known_everywhere,
    name_of,
    site_with_ask,
    site_with_task,
    sites_of,
    store_choices,
)
from adjourn.web.templating import page, static_file
from adjourn.wiring.json_documents import settled_asks
from adjourn.wiring.plan_files import open_plan
from adjourn.wiring.policies import allowances
from adjourn.wiring.scenes import gather_task, kept_transcript

_PAGE = 50  # rows
_READ = 200  # asks at a time
_LOOKED_AT = 2_000  # asks that one page of a filter looks at
_EVENTS = 100
_OUTPUT = 64 * 1024  # bytes of a run's output on one page
_TABS = (("/", "Open"), ("/snoozed", "Snoozed"), ("/settled", "Settled"))
_COMMANDS = Commands("adjourn", None)
_CUT = Cut(limit=20_000, rest="see the whole of it: adjourn show --full")
_EMPTY: dict[str, Any] = {
    "trouble": None,
    "rows": (),
    "more": None,
    "looked_at": 0,
    "below": "",
}
# What may settle an ask, and how it is called then
_SETTLED = {
    f"ask_{state}": state
    for state in ("approved", "rejected", "answered", "settled", "expired", "withdrawn")
}


def page_routes() -> list[BaseRoute]:
    """Return the routes of all pages."""
    return [
        Route("/", _inbox, methods=["GET"]),
        Route("/snoozed", _inbox, methods=["GET"]),
        Route("/settled", _settled_asks, methods=["GET"]),
        Route("/asks/{ask}", _ask, methods=["GET"]),
        Route("/tasks", _tasks, methods=["GET"]),
        Route("/tasks/{task}", _task, methods=["GET"]),
        Route("/tasks/{task}/runs/{number:int}", _output, methods=["GET"]),
        Route("/tasks/{task}/transcript", _transcript, methods=["GET"]),
        Route("/tasks/{task}/plan", _plan, methods=["GET"]),
        Route("/rules", _rules, methods=["GET"]),
        Route("/audit", _audit, methods=["GET"]),
        Route("/live", _live, methods=["GET"]),
        Route("/static/{hash}/{name}", static_file, methods=["GET"]),
        *login_routes(),
        *passkey_routes(),
        *act_routes(),
    ]


async def error_page(request: Request, error: AdjournError) -> Response:
    """Return the page for an error: what, why, and what helps."""
    headers = dict(error.headers) if isinstance(error, HttpRefusal) else {}
    status = status_of(error)
    if "Location" in headers:
        return RedirectResponse(headers["Location"], status)
    items = [
        f"{item.ask_id} {item.result}{f': {prose(item.error.sentence)}' if item.error else ''}"
        for item in (error.items if isinstance(error, NothingRecorded) else ())
    ]
    ask_id = request.path_params.get("ask")
    principal: str | None = getattr(request.state, "principal", None)
    response = page(
        "error.html",
        status=status,
        title="Somebody was first" if isinstance(error, AlreadySettled) else "It did not work",
        sentence=prose(error.sentence),
        way_out=prose(error.way_out) if error.way_out else None,
        items=items,
        ask_id=ask_id,
        user=principal.partition(":")[2] if principal else None,
    )
    response.headers.update(headers)
    return response


# --- asks -----------------------------------------------------------------------------------------


class AskFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which asks a person wants to see."""

    kind: str = ""
    task: str = ""
    q: str = ""
    store: str = ""

    @property
    def is_given(self) -> bool:
        """Whether it leaves anything out."""
        return bool(self.kind or self.task or self.q)


async def _inbox(request: Request) -> Response:
    by = await require_login(request)
    known, query = await known_everywhere(request, by), request.query_params
    is_snoozed = request.url.path == "/snoozed"
    wanted = AskFilter(
        kind=query.get("kind", ""),
        task=query.get("task", "").strip(),
        q=query.get("q", "").strip(),
        store=query.get("store", ""),
    )
    after = query.get("after")
    sites = sites_of(request)
    found: list[dict[str, Any]] = []
    done: str | None = None
    for site in [chosen_site(request)] if wanted.store else sites:
        listed = _list_of(wanted, after=after, is_snoozed=is_snoozed, done=query.get("done"))
        store: dict[str, Any] = {"name": name_of(site), "key": key_of(site), **_EMPTY}
        try:
            told, rows = await site.call(listed)
            store |= rows
            done = done or told
        except AdjournError as error:
            if len(sites) == 1:
                raise
            store["trouble"] = prose(error.sentence)
        if store["more"]:  # the next page is of this store
            store["more"] += f"&store={key_of(site)}" if len(sites) > 1 else ""
        found.append(store)
    values: dict[str, Any] = {**known, "done": done}
    return page(
        "inbox.html",
        **values,
        title="Snoozed" if is_snoozed else "Inbox",
        tabs=_TABS,
        tab=request.url.path,
        kinds=[str(kind) for kind in AskKind],
        filter=wanted,
        stores=store_choices(request),
        found=found,
        empty="Nothing is snoozed." if is_snoozed else "Nothing waits for you.",
    )


def _list_of(
    wanted: AskFilter, *, after: str | None, is_snoozed: bool, done: str | None
) -> Callable[[Controller], tuple[str | None, dict[str, Any]]]:
    """Return what lists one page of a store's asks, and says how one of them was settled."""

    def show(controller: Controller) -> tuple[str | None, dict[str, Any]]:
        now = controller.now()
        with controller.store.read() as view:
            if is_snoozed:
                asks, looked_at = view.snoozed_asks(now=now, limit=_PAGE + 1), 0
            else:
                asks, looked_at = _matching(view, wanted, after=_existing(view, after), now=now)
            more = None
            if len(asks) > _PAGE and not is_snoozed:
                given = {"kind": wanted.kind, "task": wanted.task, "q": wanted.q}
                given["after"] = asks[_PAGE - 1].id
                more = "/?" + urlencode({key: value for key, value in given.items() if value})
            is_first = not (after or is_snoozed or wanted.is_given)
            paused = paused_tasks(view, limit=_PAGE) if is_first else []
            below = paused_blocks(paused, _COMMANDS, now=now) if paused else []
            return _told(view, done), {
                "rows": [_row(view, ask, now=now) for ask in asks[:_PAGE]],
                "more": more,
                "looked_at": looked_at,
                "below": to_html(below),
            }

    return show


def _existing(view: View, ask_id: str | None) -> str | None:
    found = view.asks_like(ask_id) if ask_id else []
    return found[0] if len(found) == 1 else None


def _matching(
    view: View, wanted: AskFilter, *, after: str | None, now: int
) -> tuple[list[Ask], int]:
    """Return a page of asks that fit and one more, and how many were looked at to find few."""
    if not wanted.is_given:
        return view.open_asks(limit=_PAGE + 1, after=after, awake_at=now), 0
    found, looked_at, text = list[Ask](), 0, wanted.q.casefold()
    while len(found) <= _PAGE and looked_at < _LOOKED_AT:
        asks = view.open_asks(limit=_READ, after=after, awake_at=now)
        looked_at += len(asks)
        for ask in asks:
            is_it = wanted.kind in {"", ask.kind} and ask.task_id.startswith(wanted.task)
            if is_it and text:
                is_it = text in "\n".join(_row(view, ask, now=now).values()).casefold()
            if is_it:
                found.append(ask)
        if len(asks) < _READ:
            looked_at = 0
            break
        after = asks[-1].id
    return found[: _PAGE + 1], looked_at


def _row(view: View, ask: Ask, *, now: int) -> dict[str, str]:
    name, kind, task, when, what = ask_row(view, ask, now=now, redactor=None, full_ids=True)
    return {
        "id": name,
        "kind": kind,
        "task": task,
        "when": when,
        "what": what,
        "role": state_role(kind),
    }


def _told(view: View, ask_id: str | None) -> str | None:
    """Say how the ask that was just settled stands in the store."""
    found = _existing(view, ask_id)
    if found is None:
        return None
    ask = view.ask(found)
    settled = ask.settlement
    if settled is None:
        words = getattr(ask, "count_words", None)
        return f"{ask.kind} {ask.id[:8]}: {words or 'it is open'}."
    return f"{ask.kind} {ask.id[:8]} was {settled.state} by {prose(settled.by)}."


async def _settled_asks(request: Request) -> Response:
    by = await require_login(request)
    known = await known_everywhere(request, by)
    before = request.query_params.get("before", "")

    def show(controller: Controller) -> Response:
        now = controller.now()
        with controller.store.read() as view:
            start = int(before) if before.isascii() and before.isdigit() else None
            placed = settled_asks(view, before=start, limit=_PAGE + 1)
            rows = [
                {
                    "path": f"/asks/{ask.id}",
                    "kind": str(ask.state),
                    "role": "muted",
                    "what": _row(view, ask, now=now)["what"],
                    "meta": f"by {prose(settled.by)} · {ago(settled.at, now=now)}",
                }
                for _, ask in placed[:_PAGE]
                if (settled := ask.settlement)
            ]
            more = f"/settled?before={placed[_PAGE - 1][0]}" if len(placed) > _PAGE else None
            return page(
                "view.html",
                **known,
                title="Settled",
                stores=store_choices(request),
                store=key_of(chosen_site(request)),
                links=_TABS,
                tab="/settled",
                parts=(),
                rows=rows,
                empty="Nothing was settled yet.",
                more=more,
            )

    return await chosen_site(request).call(show)


async def _ask(request: Request) -> Response:
    by = await require_login(request)
    known, site = await known_everywhere(request, by), await site_with_ask(request)
    name, query = request.path_params["ask"], request.query_params
    host = own_passkey_host(request)

    def show(controller: Controller) -> Response:
        with controller.store.read() as view:
            ask, done = view.ask(name), _told(view, query.get("done"))
        shown = show_ask(
            controller,
            ask,
            by=by,
            passkey_host=host,
            shows_all=query.get("full") == "1",
            now=controller.now(),
        )
        with controller.store.read() as view:
            following = next_path(view, ask.id, now=controller.now())
        values: dict[str, Any] = {**known, **shown, "next": following, "done": done}
        return page("ask.html", **values)

    return await site.call(show)


# --- tasks ----------------------------------------------------------------------------------------


async def _tasks(request: Request) -> Response:
    by = await require_login(request)
    known = await known_everywhere(request, by)
    before = request.query_params.get("before")

    def show(controller: Controller) -> Response:
        now = controller.now()
        with controller.store.read() as view:
            older = view.tasks_like(before) if before else []
            found = view.tasks(limit=_PAGE + 1, before=older[0] if older else None)
            rows = [
                {
                    "path": f"/tasks/{task.id}",
                    "kind": str(task.state),
                    "role": state_role(task.state),
                    "what": title(task.spec, columns=GIST),
                    "meta": f"{task.id[:8]} · {ago(task.updated_at, now=now)}",
                }
                for task in found[:_PAGE]
            ]
            more = f"/tasks?before={found[_PAGE - 1].id}" if len(found) > _PAGE else None
            return page(
                "view.html",
                **known,
                title="Tasks",
                stores=store_choices(request),
                store=key_of(chosen_site(request)),
                parts=(),
                rows=rows,
                empty="There is no task yet.",
                more=more,
            )

    return await chosen_site(request).call(show)


def _task_named(controller: Controller, name: str) -> Task:
    with controller.store.read() as view:
        if name not in view.tasks_like(name):
            raise NotFound(f"no task is called {visible(name)}", way_out="adjourn tasks")
        return view.task(name)


def _links(task: Task) -> list[tuple[str, str]]:
    """Return the pages of a task."""
    links = [(f"/tasks/{task.id}", "Task")]
    if task.runs:
        links.append((f"/tasks/{task.id}/runs/{task.runs}", "Output"))
    if task.spec.is_driven:
        links.append((f"/tasks/{task.id}/transcript", "Conversation"))
    if task.spec.plan:
        links.append((f"/tasks/{task.id}/plan", "Plan"))
    return links


async def _task(request: Request) -> Response:
    by = await require_login(request)
    known, site = await known_everywhere(request, by), await site_with_task(request)

    def show(controller: Controller) -> Response:
        task = _task_named(controller, request.path_params["task"])
        now = controller.now()
        whole = gather_task(controller, site.root, task, commands=_COMMANDS, shows_all=False)
        scene = whole.scene
        parts = [("", to_html(task_blocks(scene, _COMMANDS, now=now, cut=_CUT)))]
        work = work_blocks(scene, cut=_CUT)
        if whole.clarification:
            work += clarification_blocks(whole.clarification)
        work.append(line(time_words(time_spent(whole.events), now=now)))
        parts.append(("Work", to_html(work)))
        if whole.resumability:
            parts.append(("Can it be resumed", to_html(resumability_blocks(whole.resumability))))
        if whole.workspace:
            parts.append(("Workspace", to_html(workspace_blocks(whole.workspace))))
        if settled := settled_blocks(scene, cut=_CUT):
            parts.append(("Settled", to_html(settled[1:])))
        if whole.calls:
            calls = all_calls(whole.calls, not_made=scene.not_made, cut=_CUT)
            parts.append(("Calls", to_html(calls[1:])))
        parts.append(("History", to_html(history_blocks(whole.events, shows_all=True)[1:])))
        with controller.store.read() as view:
            rows = [
                _row(view, ask, now=now) | {"path": f"/asks/{ask.id}", "meta": "open"}
                for ask in scene.open_asks
            ]
            return page(
                "task.html",
                **known,
                title=f"Task {task.id[:8]}",
                links=_links(task),
                tab=f"/tasks/{task.id}",
                task_id=task.id,
                parts=parts,
                asks=rows,
                can_stop=task.state
                in {TaskState.QUEUED, TaskState.RUNNING, TaskState.WAITING, TaskState.PAUSED},
            )

    return await site.call(show)


async def _output(request: Request) -> Response:
    by = await require_login(request)
    known, site = await known_everywhere(request, by), await site_with_task(request)
    number: int = request.path_params["number"]
    offset = request.query_params.get("offset", "")

    def show(controller: Controller) -> Response:
        task = _task_named(controller, request.path_params["task"])
        if not 1 <= number <= task.runs:
            raise NotFound(f"task {task.id} has no run {number}", way_out=f"adjourn runs {task.id}")
        place = run_directory(site.root, run_id(task.id, number))
        start = int(offset) if offset.isascii() and offset.isdigit() else None
        parts: list[tuple[str, Any]] = []
        for stream in ("stdout", "stderr"):
            text, before, is_all = _tail(os.path.join(place, stream), start)
            heading = stream if is_all else f"{stream}, from byte {before:,}"
            shown: list[Any] = [Code(lines=tuple(block(text).split("\n")))] if text else []
            parts.append((heading, to_html(shown or [line(Span("nothing", "muted"))])))
        runs = [
            (f"/tasks/{task.id}/runs/{each}", f"Run {each}") for each in range(1, task.runs + 1)
        ]
        return page(
            "view.html",
            **known,
            title=f"Output of task {task.id[:8]}",
            links=[*_links(task)[:1], *runs],
            tab=request.url.path,
            parts=parts,
        )

    return await site.call(show)


def _tail(path: str, start: int | None) -> tuple[str, int, bool]:
    """Return the end of a file or a piece of it, where it begins, and whether that is all."""
    fd = open_plain(path)
    if fd is None:
        return "", 0, True
    with open(fd, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        first = max(0, size - _OUTPUT) if start is None else min(start, size)
        file.seek(first)
        text = file.read(_OUTPUT).decode("utf-8", "replace")
    return text, first, first == 0 and size <= _OUTPUT


async def _transcript(request: Request) -> Response:
    by = await require_login(request)
    known, site = await known_everywhere(request, by), await site_with_task(request)

    def show(controller: Controller) -> Response:
        task = _task_named(controller, request.path_params["task"])
        messages = kept_transcript(controller, task, shows_all=False)
        blocks = transcript_blocks(messages, Tally(messages), cut=_CUT)
        return page(
            "view.html",
            **known,
            title=f"Conversation of task {task.id[:8]}",
            links=_links(task),
            tab=request.url.path,
            parts=[("", to_html(blocks))],
        )

    return await site.call(show)


async def _plan(request: Request) -> Response:
    by = await require_login(request)
    known, site = await known_everywhere(request, by), await site_with_task(request)

    def show(controller: Controller) -> Response:
        task = _task_named(controller, request.path_params["task"])
        if not task.spec.plan:
            raise NotFound(f"task {task.id} is of no plan", way_out=f"adjourn show {task.id}")
        progress = controller.plans.progress(open_plan(task.spec.plan))
        blocks = [
            graph_block(progress, columns=None),
            *standing_blocks(progress, _COMMANDS, named=task.spec.plan),
        ]
        return page(
            "view.html",
            **known,
            title=f"Plan {visible(task.spec.plan)}",
            links=_links(task),
            tab=request.url.path,
            parts=[("", to_html(blocks))],
        )

    return await site.call(show)


# --- rules and the trail --------------------------------------------------------------------------


async def _rules(request: Request) -> Response:
    by = await require_login(request)
    known = await known_everywhere(request, by)

    def show(controller: Controller) -> Response:
        now, rules = controller.now(), allowances()
        parts = [
            (f"Rule {rule.id[:8]}", to_html(lines(allowance_lines(rule, now=now))))
            for rule in rules
        ]
        if not rules:
            parts = [("", to_html([line("There are no always-allow rules.")]))]
        return page("view.html", **known, title="Always-allow rules", parts=parts)

    return await chosen_site(request).call(show)


async def _audit(request: Request) -> Response:
    by = await require_login(request)
    known = await known_everywhere(request, by)
    before = request.query_params.get("before", "")

    def show(controller: Controller) -> Response:
        with controller.store.read() as view:
            head, seal = view.trail_head()
            end = int(before) if before.isascii() and before.isdigit() else head + 1
            start = max(0, min(end, head + 1) - 1 - _EVENTS)
            events = view.happened(after=start, limit=_EVENTS)
            rows = [
                {
                    "path": f"/tasks/{each.event.task_id}",
                    "kind": str(each.place),
                    "role": "muted",
                    "what": _event_words(each),
                    "meta": f"{stamp(each.event.at)} · task {each.event.task_id[:8]}",
                }
                for each in reversed(events)
            ]
            sealed: list[Line] = [
                line(f"{head:,} events, sealed by ", Span(seal.hex()[:32], "code")),
                line("Verify all of it with: ", Span(_COMMANDS("audit", "verify"), "code")),
            ]
            return page(
                "view.html",
                **known,
                title="Audit trail",
                stores=store_choices(request),
                store=key_of(chosen_site(request)),
                parts=[("", to_html(sealed))],
                rows=rows,
                empty="Nothing has happened yet.",
                more=f"/audit?before={start + 1}" if start else None,
            )

    return await chosen_site(request).call(show)


def _event_words(happened: Happened) -> str:
    event = happened.event
    facts = ", ".join(f"{name} {prose(str(fact))}" for name, fact in event.facts.items())
    return f"{event.kind.replace('_', ' ')} by {prose(event.by)}{f' ({facts})' if facts else ''}"


# --- live -----------------------------------------------------------------------------------------


async def _live(request: Request) -> Response:
    """Tell a page which asks changed: ids and states, never HTML."""
    await require_login(request)
    sites = sites_of(request)
    given = request.headers.get("last-event-id") or request.query_params.get("after", "")
    places = given.split(",")
    if len(places) != len(sites) or not all(each.isascii() and each.isdigit() for each in places):
        raise HttpRefusal(400, "bad_place", "`after` is a place in the trail of each store")
    return StreamingResponse(
        _changes(sites, [int(each) for each in places]),
        media_type="text/event-stream",
        headers={"X-Accel-Buffering": "no"},
    )


async def _changes(sites: list[Site], places: list[int]) -> AsyncIterator[bytes]:
    yield b"retry: 2000\n\n"
    async for reached, events in follow_all(sites, places, rest=20.0):
        told = [_change(each) for each in events if each.event.facts.get("ask")]
        # The last one says how far all stores were followed
        told.append(f"id: {reached}\n".encode() + (told.pop() if told else b": still here\n\n"))
        yield b"".join(told)


def _change(happened: Happened) -> bytes:
    event = happened.event
    document: dict[str, object] = {
        "ask": event.facts.get("ask"),
        "task": event.task_id,
        "state": _SETTLED.get(event.kind),
        "by": prose(event.by),
    }
    return b"event: ask\ndata: %s\n\n" % msgspec.json.encode(document)


__all__: Sequence[str] = ["error_page", "page_routes"]
