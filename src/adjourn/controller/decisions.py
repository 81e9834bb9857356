"""What people decide: replies to asks, and snoozing them.

Short commands (inbox, approve, reject, answer, snooze, tasks) load this and nothing more.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import assert_never

import msgspec

from adjourn.controller import trust
from adjourn.controller.context import Context
from adjourn.controller.transaction import Transaction, call_asked_about
from adjourn.core.ask import (
    ApprovalAsk,
    Ask,
    Principal,
    QuestionAsk,
    Reply,
    UncertainAsk,
    Verb,
    require_open,
)
from adjourn.core.call import COMMAND, Call, command_of, digest_of
from adjourn.core.errors import (
    AdjournError,
    Ambiguous,
    Conflict,
    Misuse,
    NotAllowed,
    NotFound,
    NothingRecorded,
    ReplyResult,
    StoreProblem,
    UnreadableRow,
)
from adjourn.core.states import AskMove, CallMove
from adjourn.core.task import Milliseconds, Task, task_of_run
from adjourn.core.text.render import command_line, visible
from adjourn.core.text.when import stamp
from adjourn.core.trail.events import Receipt
from adjourn.ports.store import Change, View

_LONGEST_VALUE = 4096
_LONGEST_REASON = 300  # characters of why somebody was refused, in the trail
SHORT = 16  # digits of a digest, to say which bytes are meant
ENOUGH = 4  # characters of an id, to decide something by it
LAST = "last"  # names the newest task, to those who decide nothing

_ASK_MOVES = {
    Verb.APPROVE: AskMove.APPROVE,
    Verb.REJECT: AskMove.REJECT,
    Verb.ANSWER: AskMove.ANSWER,
}
_SNOOZING = {True: "ask_snoozed", False: "ask_woken"}


class Decisions:
    """Finds what people name, and records what they decide."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self.store = context.store  # for reading
        self.now = context.clock

    @property
    def is_settled(self) -> bool:
        """Whether no run has lost its supervisor, and no open ask has expired."""
        return not any(self._context.find_unsettled())

    # --- finding ----------------------------------------------------------------------------------

    def find_task(self, text: str, *, shortest: int = 1) -> Task:
        """Return the task that is named: by its id, a run, a checkpoint or an ask of it, or `last`.

        An id may be a unique beginning. The id of an item of a plan names the task that was begun
        for it last, before any beginning. Who changes something must give ENOUGH characters.
        """
        found = self.find(text, shortest=shortest)
        if isinstance(found, Task):
            return found
        with self.store.read() as view:
            return view.task(found.task_id)

    def find_task_id(self, text: str, *, shortest: int = 1) -> str:
        """Return the id of the task that `find_task` would return, also if it cannot be read."""
        try:
            return self.find_task(text, shortest=shortest).id
        except UnreadableRow as error:
            if error.kind != "task":
                raise
            return error.name

    def find(self, text: str, *, shortest: int = 1) -> Task | Ask:
        """Return the task or the ask that is named; a beginning of both names the task."""
        name = text.partition(".")[0]
        with self.store.read() as view:
            if name == LAST:
                newest = view.tasks(limit=1)
                if not newest:
                    raise NotFound("no tasks yet", way_out="adjourn run -- COMMAND")
                return newest[0]
            found = view.tasks_like(name) if name else []
            if name in found:
                return view.task(name)
            if item := _task_of_item(view, text):
                return item
            _require_enough(found, name, shortest=shortest, thing="task", way_out="adjourn tasks")
            if not found and name:
                asks = view.asks_like(name)
                _require_enough(asks, name, shortest=shortest, thing="ask", way_out="adjourn inbox")
                if asks:
                    return view.ask(_only_one(asks, text, thing="ask", way_out="adjourn inbox"))
            return view.task(_only_one(found, text, thing="task", way_out="adjourn tasks"))

    def find_ask(self, text: str) -> Ask:
        """Return the ask that an id or a unique prefix names, or the only open one of a task."""
        with self.store.read() as view:
            return view.ask(_ask_named(view, text))

    def find_asks(self, texts: Sequence[str]) -> list[str]:
        """Return the ids of the asks that ids or unique prefixes name, each once.

        Of several, an unknown one is returned as it is: `decide` refuses it with the others.
        """
        with self.store.read() as view:
            if len(texts) == 1:
                return [_ask_named(view, texts[0])]
            found: dict[str, None] = {}
            for text in texts:
                try:
                    found[_ask_named(view, text)] = None
                except NotFound:
                    found[text] = None
            return list(found)

    # --- who may ----------------------------------------------------------------------------------

    def principal(self, *, inside_run: str | None = None) -> Principal:
        """Return who calls, as the channel says."""
        return Principal(name=self._context.trust.caller(), inside_run=inside_run)

    def authorise(self, by: Principal, verb: str) -> None:
        """Refuse a caller who may not do this, before anything else is read.

        The transaction that does it checks again.
        """
        self._context.trust.authorise(by, verb)

    def authorise_alone(self, by: Principal, verb: str) -> None:
        """Refuse a caller who may not do what needs no transaction of the store."""
        self._context.trust.authorise(by, verb)
        with self.store.read() as view:
            self._context.trust.require_outside(view, by, verb)

    def note_place(self, by: Principal) -> bool:
        """Remember from where the store is used, unless a run is alive; return whether none is."""
        with self.store.read() as view:
            if view.running() or view.unreadable:
                return False
        with self._context.change() as tx:
            self._context.trust.note_place(tx.rows, by)
        return True

    def why_not(self, view: View, ask: Ask, verb: Verb, *, by: Principal) -> str | None:
        """Return why somebody could not give this reply to an ask, or None if they could."""
        trust_in = self._context.trust
        try:
            trust_in.authorise(by, verb)
            trust_in.require_outside(view, by, verb)
            trust_in.weigh(view, ask, verb, by=by)
        except NotAllowed as error:
            return error.sentence
        return None

    def task_around(self, inside_run: str) -> str | None:
        """Return the task of the run that somebody is part of, if it is one of this store."""
        with self.store.read() as view:
            if view.tasks_like(task_of_run(inside_run)) == [task_of_run(inside_run)]:
                return task_of_run(inside_run)
            # Its variables are gone: its shim's pid, or control group (adjourn-PID-TIME), names it
            words = inside_run.replace("-", " ").split()
            runs = [run for run in view.current_runs() if run.shim and str(run.shim.pid) in words]
            return runs[0].task_id if runs else None

    def tell_refusal(
        self,
        task_id: str,
        *,
        verb: str,
        why: str,
        by: Principal,
        also: Callable[[Change], None] = lambda _: None,
    ) -> None:
        """Record that somebody was refused, with what they wanted to do, and to which task.

        `also` writes in the same transaction.
        """
        with self._context.change() as tx:
            also(tx.rows)
            task = tx.rows.task(task_id)
            tx.tell(
                task.id,
                "refused",
                by=by.name,
                verb=verb,
                why=why[:_LONGEST_REASON],
                inside=by.inside_run,
            )

    # --- deciding ---------------------------------------------------------------------------------

    def decide(
        self,
        replies: Sequence[Reply],
        *,
        by: Principal,
        also: Callable[[Change], None] = lambda _: None,
    ) -> list[Ask]:
        """Record replies, all or none; `also` writes in the same transaction.

        The first reply to an ask wins; a later one is refused with who, when and what.
        """
        # Files may be large: they are read before the transaction
        replies = [self.with_files(reply) for reply in replies]
        with self._context.change() as tx:
            also(tx.rows)
            return self.record(tx, replies, by=by)

    def record(self, tx: Transaction, replies: Sequence[Reply], *, by: Principal) -> list[Ask]:
        """Record replies in a transaction, all or none, and let their tasks go on."""
        tx.rows.hold_asks([reply.ask_id for reply in replies])

        # Try all of them, so that a refusal says what is wrong with each. It ends the transaction.
        settled: list[Ask] = []
        items: list[ReplyResult] = []
        for reply in replies:
            try:
                ask = self.reply(tx, reply, by=by)
                settled.append(ask)
                is_counted = isinstance(ask, ApprovalAsk) and ask.is_open
                state = "approved in part" if is_counted else ask.state
                items.append(ReplyResult(reply.ask_id, result=f"would be {state}", error=None))
            except StoreProblem:
                raise
            except AdjournError as error:
                if len(replies) == 1:
                    raise
                items.append(ReplyResult(reply.ask_id, result="refused", error=error))
        if len(settled) < len(replies):
            raise NothingRecorded.of(items)

        self.continue_tasks(tx, settled)
        return settled

    def reply(self, tx: Transaction, reply: Reply, *, by: Principal) -> Ask:
        """Record one reply, and let its call start or turn it down; the task stays as it is."""
        self._context.trust.authorise_change(tx.rows, by, reply.verb)
        ask = tx.rows.ask(reply.ask_id)
        require_fitting(tx.rows, ask, reply)
        override = reply.reason_to_override
        level = self._context.trust.weigh(tx.rows, ask, reply.verb, by=by, override=override)

        if isinstance(ask, ApprovalAsk) and ask.terms.is_counted and reply.verb is Verb.APPROVE:
            # Loaded here: most asks need one approval, and `approve` is a hot path
            from adjourn.controller.approvals import count_approval

            return count_approval(
                tx,
                ask,
                reply,
                by=by,
                person=self._context.trust.person(ask, by),
                level=level,
                require_allowed=self._require_allowed,
            )

        digest: str | None = None  # of what an approval lets start
        if isinstance(ask, ApprovalAsk) and reply.verb is Verb.REJECT:
            tx.move_call(ask.task_id, ask.call, CallMove.REJECT)
        elif isinstance(ask, ApprovalAsk):
            asked = call = tx.rows.call(ask.task_id, ask.call)
            if reply.edited is not None:
                # Loaded here: most calls are approved as they are, and `approve` is a hot path
                from adjourn.controller.edits import edit

                call = edit(tx, tx.rows.task(ask.task_id), asked, reply, by=by.name)
            if ask.terms.override or reply.edited is not None:
                self._require_allowed(tx.rows, ask, call)
            body, digest = call.body, call.digest
            if not trust.runs_as_shown(ask, call, reply):
                body = trust.body_to_run(tx.rows.task(ask.task_id), ask, call, reply)
                digest = digest_of(body)
            tx.move(asked, CallMove.APPROVE, body=body, digest=digest, approved_by=by.name)

        move = _ASK_MOVES[reply.verb]
        return tx.settle_ask(
            ask,
            move,
            text=reply.text,
            by=by.name,
            level=level,
            digest=digest,
            override=override if _is_never_allowed(ask) else None,
            comment=reply.comment,
        )

    def _require_allowed(self, view: View, ask: ApprovalAsk, call: Call) -> None:
        """Refuse to approve what the policies in force turn down now, or what an edit made never.

        Only what a policy once called never is judged again here, and what a person edited. All
        else is judged again before its gate opens.
        """
        task, gate = view.task(ask.task_id), self._context.gate
        if call.tool == COMMAND:
            judgement = gate.judge(view, task, call.tool, call.body)
        else:
            judgement, _ = gate.weigh(view, task, call.tool, call.body)
        why = f": {judgement.why[0]}" if judgement.why else ""
        if judgement.is_turned_down:
            raise NotAllowed(
                f"your policy does not allow this, and nothing overrides it{why}",
                way_out=f"adjourn reject {ask.id}",
            )
        if judgement.terms.override and not ask.terms.override:
            raise NotAllowed(
                f"your policy says never of the edited call{why}",
                way_out=f"adjourn reject {ask.id} --reason TEXT",
            )

    def continue_tasks(self, tx: Transaction, settled: Sequence[Ask]) -> None:
        """Queue the tasks of these asks, or fail those whose rejection does that."""
        deciders = {ask.task_id: ask.settlement.by for ask in settled if ask.settlement}
        for task_id, by in deciders.items():
            tx.go_on(tx.rows.task(task_id), by=by)

    def receipts(self, asks: Sequence[Ask]) -> list[Receipt]:
        """Return the proof of replies that were recorded."""
        with self.store.read() as view:
            return trust.receipts(view, asks)

    def edited(self, ask_id: str, arguments: bytes) -> Call:
        """Return an open ask's call with other arguments and its files as they are now.

        Nothing is recorded.
        """
        # Loaded here: most calls are approved as they are, and `approve` is a hot path
        from adjourn.controller.edits import changed

        with self.store.read() as view:
            ask = view.ask(ask_id)
            require_open(ask)
            task, call = view.task(ask.task_id), call_asked_about(view, ask)
            if call is None:
                raise _misfit(ask)
            return changed(view, task, call, arguments, look=self._context.gate.look)[0]

    def digest_shown(self, ask_id: str, beginning: str) -> str:
        """Return the digest of an ask's call, or refuse if it does not begin as it was shown."""
        with self.store.read() as view:
            call = call_asked_about(view, view.ask(ask_id))
        if len(beginning) < SHORT or set(beginning) - set("0123456789abcdef"):
            raise Misuse(
                f"--digest takes at least {SHORT} digits of the sha256 that `show` prints",
                way_out="adjourn approve --help",
            )
        if call is None or not call.digest.startswith(beginning):
            raise Conflict(
                "the call is not the one that was shown", way_out=f"adjourn show {ask_id}"
            )
        return call.digest

    def with_files(self, reply: Reply) -> Reply:
        """Return a reply with the digests of the files of its edited command, if it edits one."""
        if reply.files is not None or reply.edited is None:
            return reply
        call = self.edited(reply.ask_id, reply.edited)
        files = command_of(call.body).files if call.tool == COMMAND else {}
        return msgspec.structs.replace(reply, files=files)

    def snooze(
        self, ask_ids: Sequence[str], *, until: Milliseconds | None, by: Principal
    ) -> list[Ask]:
        """Hide open asks from the inbox until a moment, or show them again; all or none.

        They expire when they would have expired.
        """
        with self._context.change() as tx:
            self._context.trust.authorise_change(tx.rows, by, "snooze")
            if until is not None and until <= tx.now:
                raise Misuse(f"{stamp(until)} is over", way_out="give a time in the future")
            tx.rows.hold_asks(ask_ids)
            snoozed: list[Ask] = []
            for ask_id in dict.fromkeys(ask_ids):
                ask = tx.rows.ask(ask_id)
                self._context.trust.require_subtree(tx.rows, by, "snooze", ask.task_id)
                require_open(ask)
                snoozed.append(tx.save_ask(ask, snoozed_until=until))
                tx.tell(
                    ask.task_id, _SNOOZING[until is not None], by=by.name, ask=ask.id, until=until
                )
            return snoozed

    def remind_due(self) -> None:
        """Tell once of each open ask whose reminder is due, for those who send notices."""
        with self.store.read() as view:
            if not view.asks_to_remind(now=self.now()):
                return
        # Loaded here: decisions remind of nothing
        from adjourn.controller.approvals import remind

        with self._context.change() as tx:
            remind(tx)


def require_fitting(view: View, ask: Ask, reply: Reply) -> None:
    """Refuse a reply that comes too late, or that this ask does not take."""
    require_open(ask)
    match ask:
        case ApprovalAsk() if reply.verb in {Verb.APPROVE, Verb.REJECT}:
            _require_fitting_decision(view, ask, reply)
        case QuestionAsk() if reply.verb is Verb.ANSWER:
            _require_fitting_answer(ask, reply)
        case _:
            raise _misfit(ask)
    if reply.reason_to_override and not _is_never_allowed(ask):
        raise Misuse(
            f"ask {ask.id} needs no override: your policy does not say never",
            way_out=f"adjourn approve {ask.id}",
        )


def _is_never_allowed(ask: Ask) -> bool:
    return isinstance(ask, ApprovalAsk) and ask.terms.override


def _require_fitting_decision(view: View, ask: ApprovalAsk, reply: Reply) -> None:
    if reply.verb is Verb.APPROVE and reply.text is not None:
        if ask.gate:
            raise Misuse(
                f"ask {ask.id} takes no value: its command has not started yet",
                way_out=_proper_verb(ask),
            )
        if len(reply.text.encode()) > _LONGEST_VALUE:
            sentence = (
                f"a value may have {_LONGEST_VALUE:,} bytes: the process gets it in its environment"
            )
            raise Misuse(sentence, way_out=_proper_verb(ask))
    if ask.terms.is_counted and reply.verb is Verb.APPROVE:
        if not trust.runs_as_shown(ask, view.call(ask.task_id, ask.call), reply):
            raise Misuse(
                f"ask {ask.id} takes no value: all who approve it approve the same bytes",
                way_out=_proper_verb(ask),
            )
        if reply.edited is None and reply.digest is None:
            _require_unedited(view, ask)
    if ask.terms.override and reply.verb is Verb.APPROVE and reply.edited is not None:
        raise NotAllowed(
            "your policy says never: an edit does not override that",
            way_out=f"adjourn reject {ask.id} --reason TEXT",
        )
    if reply.digest and view.call(ask.task_id, ask.call).digest != reply.digest:
        raise Conflict(
            "the call is not the one that was shown", way_out=f"adjourn show {ask.task_id}"
        )


def _require_unedited(view: View, ask: ApprovalAsk) -> None:
    """Refuse an approval that does not say of which bytes, once somebody has edited them.

    The person who types the id of the ask may have read the call before the edit.
    """
    # Loaded here: most asks need one approval, and `approve` is a hot path
    from adjourn.core.kept_documents import ORIGINAL

    call = view.call(ask.task_id, ask.call)
    if ORIGINAL.read_of(view, call) is not None:
        raise Conflict(
            "this call was edited after it was asked about: give the digest that you approve",
            way_out=f"adjourn show {ask.task_id}, then"
            f" adjourn approve {ask.id} --digest {call.digest[:SHORT]}",
        )


def _require_fitting_answer(ask: QuestionAsk, reply: Reply) -> None:
    if ask.review:
        # Loaded here: most asks are no reviews, and `answer` is a hot path
        from adjourn.core.review import review_of

        is_fitting = review_of(reply.text) is not None
    else:
        is_fitting = not ask.choices or reply.text in ask.choices
    if not is_fitting:
        choices = ", ".join(visible(choice) for choice in ask.choices)
        raise Misuse(f"ask {ask.id} takes one of: {choices}", way_out=_proper_verb(ask))


def _misfit(ask: Ask) -> Misuse:
    return Misuse(f"{ask.id} is {ask.kind.noun}: use {ask.kind.verbs}", way_out=_proper_verb(ask))


def _proper_verb(ask: Ask) -> str:
    match ask:
        case ApprovalAsk():
            return f"adjourn approve {ask.id}"
        case QuestionAsk():
            choice = ask.choices[0] if ask.choices else "TEXT"
            return command_line(["adjourn", "answer", ask.id, choice])
        case UncertainAsk():
            return f"adjourn show {ask.task_id}"  # which names a command for each verdict
        case _:
            assert_never(ask)


def _ask_named(view: View, text: str) -> str:
    """Return the ask that is named; a task stands for its ask if exactly one is open."""
    require_named(text)
    found = view.asks_like(text) if text else []
    # Of a run's or a call's name, what stands before the dot names the task
    task = text.partition(".")[0]
    tasks = view.tasks_like(task) if len(task) >= ENOUGH and not found else []
    if len(tasks) == 1:
        asks = [ask.id for ask in view.open_asks_of(tasks[0])]
        if len(asks) == 1:
            return asks[0]
        way_out = f"adjourn show {tasks[0]}"
        if not asks:
            raise NotFound(f"task {visible(text)} has no open ask", way_out=way_out)
        raise Ambiguous(
            f"task {visible(text)} has {len(asks)} open asks: {', '.join(asks)}", way_out=way_out
        )
    _require_enough(found, text, shortest=ENOUGH, thing="ask", way_out="adjourn inbox")
    return _only_one(found, text, thing="ask", way_out="adjourn inbox")


def require_named(text: str) -> None:
    """Refuse to decide by `last`: a task may have begun since the person looked."""
    if text == LAST:
        raise Misuse(f"{LAST} is too vague to decide by: give an id", way_out="adjourn inbox")


def _require_enough(
    found: Sequence[str], text: str, *, shortest: int, thing: str, way_out: str
) -> None:
    """Refuse a beginning of an id that is too short to decide by, and list what it matches."""
    if found and len(text) < shortest:
        raise Ambiguous(
            f"{visible(text)} is too short to decide by: give at least {shortest} characters of"
            f" the id; {thing}s that begin so: {', '.join(found)}",
            way_out=way_out,
        )


def _task_of_item(view: View, text: str) -> Task | None:
    """Return the task of the item of a plan that is called so, if there is one."""
    # Most tasks are named by their own ids (bench start)
    from adjourn.core.kept_documents import ITEM

    begun: dict[str, Task] = {}
    kept = ITEM.read(view, text) if text.isascii() and text.isprintable() else None
    for path, task_id in (kept or {}).items():
        with suppress(NotFound):  # it was pruned
            begun[path] = view.task(task_id)
    if len(begun) > 1:
        listed = ", ".join(f"{task.id} of {visible(path)}" for path, task in begun.items())
        raise Ambiguous(
            f"several plans have a task {visible(text)}: {listed}", way_out="adjourn tasks"
        )
    return next(iter(begun.values()), None)


def _only_one(found: list[str], text: str, *, thing: str, way_out: str) -> str:
    if len(found) == 1:
        return found[0]
    if not found:
        raise NotFound(f"no {thing} is called {visible(text) or '(nothing)'}", way_out=way_out)
    raise Ambiguous(
        f"several {thing}s begin with {visible(text)}: {', '.join(found)}", way_out=way_out
    )
