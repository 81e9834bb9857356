"""Where a person replies.

What inbox, approve, reject, answer, snooze and tasks need, and nothing more.
"""

from collections.abc import Generator, Sequence
from contextlib import contextmanager

import msgspec

from adjourn.controller import trust
from adjourn.controller.transaction import ADJOURN, Steps
from adjourn.core.ask import Ask, AskKind, Principal, Reply, Verb, refuse_settled
from adjourn.core.call import COMMAND, Call, command_of, digest_of
from adjourn.core.errors import (
    AdjournError,
    Ambiguous,
    Conflict,
    Item,
    Misuse,
    NotFound,
    NothingRecorded,
    StoreProblem,
)
from adjourn.core.states import AskMove, CallMove
from adjourn.core.task import Milliseconds, Run, Task
from adjourn.core.text.render import command_line, visible
from adjourn.core.text.when import stamp
from adjourn.core.trail.receipt import Receipt
from adjourn.ports.store import Store, View
from adjourn.ports.world import Authoriser, Clock, Look, NewId, Supervisors

_LONGEST_VALUE = 4096

_ASK_MOVES = {
    Verb.APPROVE: AskMove.APPROVE,
    Verb.REJECT: AskMove.REJECT,
    Verb.ANSWER: AskMove.ANSWER,
}
_KINDS = {
    Verb.APPROVE: AskKind.APPROVAL,
    Verb.REJECT: AskKind.APPROVAL,
    Verb.ANSWER: AskKind.QUESTION,
}
_SNOOZING = {True: "ask_snoozed", False: "ask_woken"}


class Desk:
    """Applies the rules to what a person says.

    The whole controller is one, too: there is no second way to decide.
    """

    def __init__(
        self,
        store: Store,
        *,
        clock: Clock,
        new_id: NewId,
        supervisors: Supervisors,
        look: Look,
        authoriser: Authoriser,
    ) -> None:
        self._store = store
        self._trust = trust.Trust(authoriser)
        self._clock = clock
        self._new_id = new_id
        self._supervisors = supervisors
        self._look = look

    @property
    def store(self) -> Store:
        """The store, for reading."""
        return self._store

    def now(self) -> Milliseconds:
        """Return the time, by the clock that all who share the store have in common."""
        return self._clock()

    def principal(self, *, inside_run: str | None = None) -> Principal:
        """Return who speaks to us: whoever the channel says it is."""
        return Principal(name=self._trust.caller(), inside_run=inside_run)

    @contextmanager
    def _steps(self) -> Generator[Steps, None, None]:
        with self._store.change() as tx:
            yield Steps(tx, now=self._clock(), new_id=self._new_id)

    # --- what there is ----------------------------------------------------------------------------

    def find(self, text: str) -> Task:
        """Return the task that an id, a checkpoint id, or a unique prefix of either names."""
        with self._store.read() as view:
            wanted = text.partition(".")[0]
            found = view.tasks_like(wanted) if wanted else []
            if wanted in found:
                return view.task(wanted)
            if wanted and not found:
                _refuse_ask(view, wanted)
            return view.task(_the_one(found, text, thing="task", way_out="adjourn tasks"))

    def find_ask(self, text: str) -> Ask:
        """Return the ask that an id or a unique prefix names."""
        with self._store.read() as view:
            return view.ask(_named_ask(view, text))

    def find_asks(self, texts: Sequence[str]) -> list[str]:
        """Return the ids of the asks that ids or unique prefixes name, each once.

        Of several, one that names none is kept.
        """
        with self._store.read() as view:
            if len(texts) == 1:
                return [_named_ask(view, texts[0])]
            return list(dict.fromkeys(_named_if_any(view, text) for text in texts))

    def kept(self, task_id: str, name: str) -> bytes | None:
        """Return a document of a task."""
        with self._store.read() as view:
            return view.document(task_id, name)

    def orphans(self) -> list[Run]:
        """Return the runs whose supervisor is gone."""
        with self._store.read() as view:
            return self._orphans(view)

    def _orphans(self, view: View) -> list[Run]:
        running = [view.run(task.id, task.runs) for task in view.running()]
        abandoned = {run.id for run in view.abandoned()}
        return [
            run
            for run in running
            if run.id in abandoned or not self._supervisors.supervisor_lives(run.supervisor)
        ]

    @property
    def is_settled(self) -> bool:
        """Whether no supervisor is gone that left a run, and no ask is open whose time is over."""
        return not any(self._unsettled())

    def _unsettled(self) -> tuple[list[Run], list[Ask]]:
        with self._store.read() as view:
            return self._orphans(view), view.expired_asks(now=self._clock())

    # --- a person replies -------------------------------------------------------------------------

    def decide(self, replies: Sequence[Reply], *, by: Principal) -> list[Ask]:
        """Record replies, all or none.

        The first reply to an ask wins; everyone else is told who, when and what.
        """
        looked_at = [self._looked_at(reply) for reply in replies]
        with self._steps() as step:
            return self._decide(step, looked_at, by=by)

    def edited(self, ask_id: str, arguments: bytes) -> Call:
        """Return an open ask's call with other arguments, and the files that it would then depend on; nothing is recorded."""
        from adjourn.controller.edits import changed  # seldom: most calls are approved as they are

        with self._store.read() as view:
            ask = view.ask(ask_id)
            if not ask.is_open:
                refuse_settled(ask)
            task, call = view.task(ask.task_id), view.call(ask.task_id, ask.call or 0)
            return changed(view, task, call, arguments, look=self._look)[0]

    def _looked_at(self, reply: Reply) -> Reply:
        """Look at the files of an edited command outside of the transaction, unless whoever edited it has."""
        if reply.files is not None or reply.edited is None:
            return reply
        call = self.edited(reply.ask_id, reply.edited)
        return msgspec.structs.replace(
            reply, files=command_of(call.body).files if call.tool == COMMAND else {}
        )

    def receipts(self, asks: Sequence[Ask]) -> list[Receipt]:
        """Return the proof of replies that were recorded."""
        with self._store.read() as view:
            return trust.receipts(view, asks)

    def _decide(self, step: Steps, replies: Sequence[Reply], *, by: Principal) -> list[Ask]:
        step.tx.hold_asks([reply.ask_id for reply in replies])
        return self._gone_on(step, self._all_or_none(step, replies, by=by))

    def _gone_on(self, step: Steps, settled: list[Ask]) -> list[Ask]:
        for task_id, by in {ask.task_id: ask.settled_by for ask in settled}.items():
            step.go_on(step.tx.task(task_id), by=by or ADJOURN)
        return settled

    def _all_or_none(self, step: Steps, replies: Sequence[Reply], *, by: Principal) -> list[Ask]:
        """Take every reply, or refuse all of them with what is wrong with each."""
        tried = [self._tried(step, reply, by=by) for reply in replies]
        settled = [one for one in tried if isinstance(one, Ask)]
        if len(settled) == len(replies):
            return settled
        if len(replies) == 1 and isinstance(tried[0], AdjournError):
            raise tried[0]
        raise NothingRecorded.of(
            [_item(reply, came) for reply, came in zip(replies, tried, strict=True)]
        )

    def _tried(self, step: Steps, reply: Reply, *, by: Principal) -> Ask | AdjournError:
        """Take a reply, or return why not.

        Whoever gets an error must not let the transaction end well.
        """
        try:
            return self._reply(step, reply, by=by)
        except StoreProblem:
            raise
        except AdjournError as error:
            return error

    def authorise(self, by: Principal, verb: str) -> None:
        """Refuse whoever may not do this, before anything else is read.

        The transaction that does it checks again.
        """
        self._trust.authorise(by, verb)

    def authorise_alone(self, by: Principal, verb: str) -> None:
        """Refuse whoever may not do what is done without a transaction of the store."""
        self._trust.authorise(by, verb)
        with self._store.read() as view:
            self._trust.require_outside(view, by, verb)

    def _authorise(self, step: Steps, by: Principal, verb: str, task: Task | None = None) -> None:
        """Refuse whoever may not do this, in the very transaction that does it.

        No run may begin in between.
        """
        self._trust.authorise(by, verb, task)
        self._trust.require_outside(step.tx, by, verb)
        self._trust.note_place(step.tx, by)

    def note_place(self, by: Principal) -> bool:
        """Remember from where the store is used, unless a run of it is alive.

        Say whether none is.
        """
        with self._store.read() as view:
            if view.running():
                return False
        with self._steps() as step:
            self._trust.note_place(step.tx, by)
        return True

    def _reply(self, step: Steps, reply: Reply, *, by: Principal) -> Ask:
        self._authorise(step, by, reply.verb)
        ask = step.tx.ask(reply.ask_id)
        self._fits(step.tx, ask, reply)
        level = self._trust.weigh(step.tx, ask, reply.verb, by=by)
        digest = (
            self._decide_call(step, ask, reply, by=by) if reply.verb is not Verb.ANSWER else None
        )
        move = _ASK_MOVES[reply.verb]
        return step.settle_ask(ask, move, text=reply.text, by=by.name, level=level, digest=digest)

    def _fits(self, view: View, ask: Ask, reply: Reply) -> None:
        if not ask.is_open:
            refuse_settled(ask)
        if ask.kind is not _KINDS.get(reply.verb):
            raise Misuse(
                f"ask {ask.id} is of the kind {ask.kind}: {reply.verb} does not fit it",
                way_out=_proper_verb(ask),
            )
        if ask.review:
            _require_review(ask, reply)
        elif ask.choices and reply.verb is Verb.ANSWER and reply.text not in ask.choices:
            choices = ", ".join(visible(choice) for choice in ask.choices)
            raise Misuse(f"ask {ask.id} takes one of: {choices}", way_out=_proper_verb(ask))
        if ask.gate and reply.verb is Verb.APPROVE and reply.text is not None:
            raise Misuse(
                f"ask {ask.id} takes no value: its command has not started yet",
                way_out=_proper_verb(ask),
            )
        if reply.verb is Verb.APPROVE and len((reply.text or "").encode()) > _LONGEST_VALUE:
            raise Misuse(
                f"a value may have {_LONGEST_VALUE:,} bytes: the process gets it in its environment",
                way_out=_proper_verb(ask),
            )
        if reply.digest and ask.call and view.call(ask.task_id, ask.call).digest != reply.digest:
            raise Conflict(
                "the call is not the one that was shown", way_out=f"adjourn show {ask.task_id}"
            )

    def _decide_call(self, step: Steps, ask: Ask, reply: Reply, *, by: Principal) -> str | None:
        """Let a call start or turn it down; return the digest of what may start."""
        asked = call = step.tx.call(ask.task_id, ask.call or 0)
        if reply.verb is Verb.REJECT:
            step.move(asked, CallMove.REJECT)
            return None
        if reply.edited is not None:
            from adjourn.controller.edits import edit  # seldom: most calls are approved as they are

            call = edit(step, step.tx.task(ask.task_id), asked, reply, by=by.name)
        if trust.runs_as_shown(ask, call, reply):
            step.move(
                asked, CallMove.APPROVE, body=call.body, digest=call.digest, approved_by=by.name
            )
            return call.digest
        body = trust.body_to_run(step.tx.task(ask.task_id), ask, call, reply)
        return step.move(
            asked, CallMove.APPROVE, body=body, digest=digest_of(body), approved_by=by.name
        ).digest

    def snooze(
        self, ask_ids: Sequence[str], *, until: Milliseconds | None, by: Principal
    ) -> list[Ask]:
        """Hide open asks from the inbox until a moment, or no longer; all or none.

        They expire when they would have expired.
        """
        with self._steps() as step:
            self._authorise(step, by, "snooze")
            if until is not None and until <= step.now:
                raise Misuse(f"{stamp(until)} is over", way_out="name a time that is still to come")
            step.tx.hold_asks(ask_ids)
            return [
                self._snooze(step, step.tx.ask(ask_id), until=until, by=by)
                for ask_id in dict.fromkeys(ask_ids)
            ]

    def _snooze(self, step: Steps, ask: Ask, *, until: Milliseconds | None, by: Principal) -> Ask:
        if not ask.is_open:
            refuse_settled(ask)
        snoozed = msgspec.structs.replace(ask, snoozed_until=until)
        step.tx.save_ask(ask, snoozed)
        step.tell(ask.task_id, _SNOOZING[until is not None], by=by.name, ask=ask.id, until=until)
        return snoozed


def _require_review(ask: Ask, reply: Reply) -> None:
    """Refuse what is no review: words that nobody can take for a yes, a no, or a wish are none."""
    from adjourn.core.review import review_of  # seldom: most asks are no reviews

    if review_of(reply.text) is None:
        raise Misuse(
            f"ask {ask.id} takes one of: {', '.join(ask.choices)}", way_out=_proper_verb(ask)
        )


def _item(reply: Reply, came: Ask | AdjournError) -> Item:
    if isinstance(came, Ask):
        return Item(reply.ask_id, result=f"would be {came.state}", error=None)
    return Item(reply.ask_id, result="refused", error=came)


def _the_one(found: list[str], text: str, *, thing: str, way_out: str) -> str:
    if len(found) == 1:
        return found[0]
    if not found:
        raise NotFound(f"no {thing} is called {visible(text) or '(nothing)'}", way_out=way_out)
    raise Ambiguous(
        f"several {thing}s begin with {visible(text)}: {', '.join(found)}", way_out=way_out
    )


def _named_if_any(view: View, text: str) -> str:
    try:
        return _named_ask(view, text)
    except NotFound:
        return text  # refused with what else is wrong, when the others are decided


def _named_ask(view: View, text: str) -> str:
    found = view.asks_like(text) if text else []
    if text and not found:
        _refuse_task(view, text)
    return _the_one(found, text, thing="ask", way_out="adjourn inbox")


def _refuse_ask(view: View, text: str) -> None:
    """Name the task to whoever named an ask of it instead."""
    asks = view.asks_like(text)
    if len(asks) == 1:
        raise NotFound(
            f"{visible(text)} is an ask, and no task",
            way_out=f"adjourn show {view.ask(asks[0]).task_id}",
        )


def _refuse_task(view: View, text: str) -> None:
    """Show the asks of a task to whoever named the task instead of one of them."""
    tasks = view.tasks_like(text)
    if len(tasks) == 1:
        raise NotFound(f"{visible(text)} is a task, and no ask", way_out=f"adjourn show {tasks[0]}")


def _proper_verb(ask: Ask) -> str:
    match ask.kind:
        case AskKind.APPROVAL:
            return f"adjourn approve {ask.id}"
        case AskKind.QUESTION:
            return command_line(
                ["adjourn", "answer", ask.id, ask.choices[0] if ask.choices else "TEXT"]
            )
        case AskKind.UNCERTAIN:
            return f"adjourn settle {ask.task_id}.{ask.tool_call_id} it-ran|it-did-not|run-again"
