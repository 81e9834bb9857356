"""Settles asks by keys: nothing that was not on the screen, whole, and never two by one key."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from adjourn.controller.controller import Controller
from adjourn.core.ask import ApprovalAsk, Ask, QuestionAsk, Reply, Verb
from adjourn.core.call import Call, canonical
from adjourn.core.edit.edit import difference
from adjourn.core.errors import AdjournError
from adjourn.core.policy.policy import Allowance
from adjourn.core.states import TaskState
from adjourn.core.task import Task
from adjourn.core.text.render import WHOLE, prose, visible
from adjourn.core.text.when import milliseconds, stamp
from adjourn.tui.arming import ALONE
from adjourn.tui.listings import RowKey
from adjourn.tui.pages import Page, ask_page
from adjourn.tui.surface import READ_ONLY, TOO_FAST, Surface
from adjourn.views.allowance import what_it_matches
from adjourn.views.block import BLANK, Block, Id, Span, line, lines
from adjourn.views.call import call_blocks, short
from adjourn.views.keys import KeyAction, keys_for
from adjourn.views.task import difference_blocks
from adjourn.wiring.call_drafts import draft_of, edited_call, edited_in_editor
from adjourn.wiring.ownership import require_outside_of_all_runs
from adjourn.wiring.policies import (
    allowance_of,
    calls_of_late,
    judged_now,
    keep_allowance,
    matched,
    refuse_never,
    wanted_of_ask,
)

_HOUR = 3_600_000
_DIGITS = 16  # of a digest in a command
_RULE = "─" * 20

Act = Callable[[Ask, Page, RowKey], Coroutine[Any, Any, None]]


class Settling:
    """What the keys for asks do."""

    def __init__(self, surface: Surface) -> None:
        self._surface = surface

    def press(self, action: KeyAction) -> None:
        """Settle the ask in the pane, or all that are marked, as a key says."""
        surface = self._surface
        if surface.is_read_only:
            surface.say(READ_ONLY)
        elif surface.marked_keys and action in {KeyAction.APPROVE, KeyAction.REJECT}:
            surface.spawn(self._settle_marked(Verb(action)))
        else:
            acts: dict[KeyAction, Act] = {
                KeyAction.APPROVE: self._approve,
                KeyAction.REJECT: self._reject,
                KeyAction.ANSWER: self._answer,
                KeyAction.EDIT: self._edit,
                KeyAction.ALWAYS: self._always,
                KeyAction.SNOOZE: self._snooze,
            }
            self._act_if_armed(action, acts[action])

    def _act_if_armed(self, action: KeyAction, act: Act) -> None:
        """Act on the ask in the pane if it was shown whole, and if no other key follows."""
        surface = self._surface
        page, key = surface.page, surface.page_key
        if page is None or page.ask is None or key is None or surface.face:
            surface.say("Select an ask first.")
            return
        ask = page.ask
        if not ask.is_open:
            surface.say("It is settled already: keys do nothing here.")
        elif action not in {each.action for each in keys_for(ask)}:
            surface.say(_other_way(ask, surface, key))
        elif why := surface.arming.why_not(time.monotonic(), shown_at=surface.pane.shown_at):
            surface.say(why)
        else:
            surface.spawn(self._act_if_alone(act, ask, page, key))

    async def _act_if_alone(self, act: Act, ask: Ask, page: Page, key: RowKey) -> None:
        surface = self._surface
        count = surface.arming.count
        await asyncio.sleep(ALONE)
        if surface.arming.count != count or surface.page is not page:
            surface.say(TOO_FAST)
        else:
            await act(ask, page, key)

    # --- one ask ----------------------------------------------------------------------------------

    async def _approve(self, ask: Ask, page: Page, key: RowKey) -> None:
        reply = Reply(ask_id=ask.id, verb=Verb.APPROVE, digest=page.digest)
        await self._decide(key.store, [reply], [_approve_words(reply)])

    async def _reject(self, ask: Ask, page: Page, key: RowKey) -> None:
        del page
        asked = [line("Reject it. Why? (Enter for no reason)")]
        reason = await self._surface.ask_line(asked)
        if reason is None:
            return
        reply = Reply(ask_id=ask.id, verb=Verb.REJECT, text=reason or None)
        said = ("--reason", reason) if reason else ()
        await self._decide(key.store, [reply], [("reject", Id(ask.id), *said)])

    async def _answer(self, ask: Ask, page: Page, key: RowKey) -> None:
        del page
        choices = ask.choices if isinstance(ask, QuestionAsk) else ()
        asked: list[Block] = [line(prose(ask.prompt))]
        asked += [line(f"  {at}  {visible(each)}") for at, each in enumerate(choices, 1)]

        def check(text: str) -> str | None:
            if not text:
                return "An answer has at least one character."
            if choices and _choice(choices, text) not in choices:
                return "It must be one of these, or its number."
            return None

        text = await self._surface.ask_line(asked, check=check)
        if text is None:
            return
        said = _choice(choices, text)
        reply = Reply(ask_id=ask.id, verb=Verb.ANSWER, text=said)
        await self._decide(key.store, [reply], [("answer", Id(ask.id), "--", said)])

    async def _snooze(self, ask: Ask, page: Page, key: RowKey) -> None:
        del page
        surface = self._surface

        def hide(controller: Controller) -> list[Ask]:
            until = controller.now() + _HOUR
            by = surface.principal(controller)
            return controller.decisions.snooze([ask.id], until=until, by=by)

        surface.decided_here.add(ask.id)
        if await surface.done(key.store, hide) is not None:
            words = ("snooze", Id(ask.id), "--for", "1h")
            surface.note(key.store, words, "Snoozed for an hour.")

    async def _edit(self, ask: Ask, page: Page, key: RowKey) -> None:
        """Open the call in the user's editor, show what it becomes, and approve that on a yes."""
        surface, at = self._surface, key.store
        draft = await surface.done(at, lambda controller: draft_of(controller, ask.id))
        if draft is None:
            return
        if draft.call.digest != page.digest:
            surface.say("The call has changed meanwhile: look at it again.")
            return
        try:
            arguments = surface.run_editor(lambda: edited_in_editor(surface.root(at), draft))
        except AdjournError as error:
            surface.say_error(error)
            return
        made = await surface.done(at, lambda controller: edited_call(controller, draft, arguments))
        if made is None:
            return
        call, files = made
        if await surface.confirm(_edited_blocks(draft.call, call), "Approve it so?"):
            reply = Reply(
                ask_id=ask.id,
                verb=Verb.APPROVE,
                digest=draft.call.digest,
                edited=canonical(arguments),
                files=files,
            )
            await self._decide(at, [reply], [("approve", Id(ask.id), "--edit")])

    async def _always(self, ask: Ask, page: Page, key: RowKey) -> None:
        """Have the bounds of a rule written, show the rule, and on a yes approve and keep it."""
        surface, at = self._surface, key.store
        asked = [
            line("Approve it, and allow the same call from now on."),
            line("For how long, and in its workspace or only in its task:"),
            line("  30d workspace    or: 8h task"),
        ]
        bounds = await surface.ask_line(asked, value="30d workspace", check=_check_bounds)
        if bounds is None:
            return
        length, where = _bounds(bounds)

        def make(controller: Controller) -> tuple[Allowance, list[str], int]:
            require_outside_of_all_runs("rules add")
            by = surface.principal(controller)
            controller.decisions.authorise_alone(by, "rules add")
            with controller.store.read() as view:
                task = view.task(ask.task_id) if where == "task" else None
            wanted = wanted_of_ask(controller, ask.id, workspace=None, task=task)
            refuse_never(judged_now(surface.root(at), wanted))
            rule = allowance_of(wanted, until=length, by=by.name)
            late = calls_of_late(controller)
            return rule, matched(rule, late), len(late)

        made = await surface.done(at, make)
        if made is None:
            return
        rule, calls, count = made
        place = f"task {rule.task}" if rule.task else f"workspace {visible(rule.workspace or '')}"
        blocks: list[Block] = [line("This would run without asking from now on:"), BLANK]
        blocks += lines(what_it_matches(rule), indent="  ")
        blocks += [
            line(f"  in the {place}, until {stamp(rule.until)}"),
            line(f"  It would have matched {len(calls)} of the last {count} calls."),
        ]
        if not await surface.confirm(blocks, "Approve it, and keep this rule?"):
            return
        reply = Reply(ask_id=ask.id, verb=Verb.APPROVE, digest=page.digest)
        if await self._decide(at, [reply], [_approve_words(reply)]):
            await surface.done(at, lambda _: keep_allowance(rule))
            bound = ("--task", Id(ask.task_id)) if where == "task" else ()
            until = ("--until", bounds.split()[0])
            revoke = surface.commands(at)("rules", "revoke", rule.id[:8])
            surface.note(
                at,
                ("rules", "add", "--ask", Id(ask.id), *bound, *until),
                f"Approved, and allowed from now on; {revoke} takes that back.",
            )

    # --- several ----------------------------------------------------------------------------------

    async def _settle_marked(self, verb: Verb) -> None:
        """Show every marked call in full, and settle all of them, or none, on a yes."""
        surface = self._surface
        keys = surface.marked_keys
        at, action = keys[0].store, KeyAction(verb)
        if any(key.store != at for key in keys):
            surface.say("They are in several stores: settle those of one store at a time.")
            return
        commands = surface.commands(at)

        def read(controller: Controller) -> list[Page]:
            by = surface.principal(controller)
            return [ask_page(controller, key.id, commands=commands, by=by) for key in keys]

        pages = await surface.done(at, read)
        blocks: list[Block] = []
        replies: list[Reply] = []
        for page in pages or ():
            if page.ask is None or action not in {each.action for each in keys_for(page.ask)}:
                name = short(page.ask.id) if page.ask else ""
                surface.say(f"Ask {name} cannot be settled by this key: unmark it.")
                return
            blocks += [*page.blocks, BLANK, line(Span(_RULE, "muted")), BLANK]
            digest = page.digest if verb is Verb.APPROVE else None
            replies.append(Reply(ask_id=page.ask.id, verb=verb, digest=digest))
        question = f"{verb.capitalize()} all {len(replies)}?"
        if replies and await surface.confirm(blocks, question):
            words = [
                _approve_words(reply) if verb is Verb.APPROVE else (verb, Id(reply.ask_id))
                for reply in replies
            ]
            await self._decide(at, replies, words)

    async def _decide(
        self, at: int, replies: Sequence[Reply], words: Sequence[tuple[str, ...]]
    ) -> bool:
        """Record replies, all or none; the list goes on to the next ask."""
        surface = self._surface

        def decide(controller: Controller) -> list[tuple[Ask, Task]]:
            settled = controller.decisions.decide(replies, by=surface.principal(controller))
            with controller.store.read() as view:
                return [(ask, view.task(ask.task_id)) for ask in settled]

        names = {reply.ask_id for reply in replies}
        surface.decided_here |= names
        found = await surface.done(at, decide)
        if found is None:
            surface.decided_here -= names
            return False
        for each in words:
            surface.note(at, each)
        surface.unmark_all()
        ask, task = found[-1]
        told = str(ask.state).capitalize()
        if isinstance(ask, ApprovalAsk) and ask.is_open:
            told = f"Recorded: {ask.count_words}"
        if len(found) > 1:
            told = f"{len(found)} {ask.state}"
        then = " Its task is queued: u goes on with it." if task.state is TaskState.QUEUED else ""
        surface.say(f"{told}.{then}  ", Span(surface.command_log[-1], "code"))
        return True


def _approve_words(reply: Reply) -> tuple[str, ...]:
    return ("approve", Id(reply.ask_id), "--digest", (reply.digest or "")[:_DIGITS])


def _other_way(ask: Ask, surface: Surface, key: RowKey) -> str:
    """Say how an ask is settled for which a key is not the one."""
    commands = surface.commands(key.store)
    match ask:
        case QuestionAsk():
            return "It is a question: t answers it."
        case ApprovalAsk() if ask.terms.override:
            override = commands("approve", ask.id, "--override", "why it must run")
            return f"The policy never allows it. To override: {override}"
        case ApprovalAsk():
            return "It is an approval: a approves it, r rejects it."
        case _:
            return f"See the outcome with: {commands('show', ask.task_id)}"


def _choice(choices: Sequence[str], text: str) -> str:
    """Return the choice that a number stands for, or the text as it is."""
    if text in choices or not (text.isascii() and text.isdigit()):
        return text
    return choices[int(text) - 1] if 1 <= int(text) <= len(choices) else text


def _bounds(text: str) -> tuple[int, str]:
    """Return how long a rule counts, and whether in its workspace or in its task."""
    length, _, where = text.strip().partition(" ")
    return milliseconds(length), where.strip() or "workspace"


def _check_bounds(text: str) -> str | None:
    try:
        _, where = _bounds(text)
    except ValueError:
        return "Write a length of time first: 8h, 7d, 30d."
    return None if where in {"workspace", "task"} else "Write workspace or task behind it."


def _edited_blocks(before: Call, after: Call) -> list[Block]:
    changes = difference(after.tool, before.body, after.body)
    return [
        line("what changes:"),
        *difference_blocks(changes, indent="    ", cut=WHOLE),
        line("what would run:"),
        *call_blocks(after, cut=WHOLE),
    ]
