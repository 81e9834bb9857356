"""What a running process asks, proposes, keeps and gets answered."""

from collections.abc import Sequence
from hashlib import sha256

import msgspec

from adjourn.controller.context import Context
from adjourn.controller.decisions import Decisions
from adjourn.controller.reasons import Reasons, tell_start
from adjourn.controller.transaction import ASKED, POLICY, AnyAsk, Transaction, approval_of
from adjourn.core.ask import (
    ApprovalAsk,
    Ask,
    AskReason,
    Principal,
    Proposal,
    Question,
    QuestionAsk,
    Reply,
    is_review,
)
from adjourn.core.call import Call, digest_of, slot_of
from adjourn.core.clarification import Clarification, Left, Request
from adjourn.core.errors import AlreadyDone, Misuse
from adjourn.core.kept_documents import (
    CHECKPOINT,
    CLARIFICATION,
    EDITABLE,
    FOLLOW_UPS,
    ORIGINAL,
    RESPONSE,
    UNTOLD,
    WHY,
)
from adjourn.core.policy.judgement import NOT_ALLOWED, Judgement
from adjourn.core.states import AskMove, AskState, CallMove, CallState, allows_ask
from adjourn.core.task import Run, Task, number_of_run, task_of_run
from adjourn.core.trail.reason import NoReason, Reason, is_known
from adjourn.ports.store import Turn, View
from adjourn.ports.world import StartMark


class Asks:
    """Applies the rules to what a running process asks."""

    def __init__(self, context: Context, decisions: Decisions) -> None:
        self._context = context
        self._decisions = decisions
        self._reasons = Reasons(context)

    # --- questions --------------------------------------------------------------------------------

    def ask(self, run_id: str, question: Question) -> QuestionAsk:
        """Register a question of a running process, or return it with its answer.

        The n-th with a key is the n-th ask. In an agent's session an answer is handed out once.
        """
        with self._context.change() as tx:
            task, run = tx.running(run_id)
            found, _ = _register_question(tx, task, run, question, untold=_untold(tx, task))
            _note_untold(tx, task, [found])
            return found

    def ask_for_agent(self, run_id: str, question: Question) -> QuestionAsk:
        """Register a question of an agent itself, or return it with its answer.

        Its driver tells the agent the answer.
        """
        with self._context.change() as tx:
            found, _ = _register_question(tx, *tx.running(run_id), question)
            return found

    def clarify(self, run_id: str, request: Request) -> tuple[Clarification, list[QuestionAsk]]:
        """Register the questions of a running process, or return them with their answers."""
        with self._context.change() as tx:
            task, run = tx.running(run_id)
            clarification, asks = _register_request(
                tx, task, run, request, untold=_untold(tx, task)
            )
            _note_untold(tx, task, asks)
            return clarification, asks

    def clarify_for_agent(
        self, run_id: str, request: Request
    ) -> tuple[Clarification, list[QuestionAsk]]:
        """Register several questions of an agent itself, whose driver tells it the answers."""
        with self._context.change() as tx:
            return _register_request(tx, *tx.running(run_id), request)

    def collect(self, run_id: str, ask_ids: Sequence[str]) -> list[QuestionAsk]:
        """Return questions to the process that waits for them, or nothing until all are settled."""
        with self._context.change() as tx:
            task, run = tx.running(run_id)
            asks = [ask for name in ask_ids if isinstance(ask := tx.rows.ask(name), QuestionAsk)]
            if any(ask.is_open for ask in asks):
                return []
            for ask in asks:
                tx.rows.close_turn(run.id, ask.id)
            _note_untold(tx, task, asks)
            return asks

    # --- calls ------------------------------------------------------------------------------------

    def propose(self, run_id: str, proposal: Proposal) -> tuple[ApprovalAsk, Call]:
        """Put a call of a running process before a person, or find it again.

        An approved one is handed out to it, once.
        """
        with self._context.change() as tx:
            task, run = tx.running(run_id)
            found, reason = self._register_proposal(tx, task, run, proposal)
            call = tx.rows.call(task.id, found.call)
            if call.state is CallState.APPROVED and isinstance(reason, Reason):
                call = hand_out(tx, run, call, reason)
            elif found.state is AskState.APPROVED:
                raise AlreadyDone(
                    f"call {call.id} is {call.state}: it was handed out before",
                    way_out=f"adjourn show {task.id}",
                )
        if call.state is CallState.EXECUTING:
            mark = StartMark(place=run_id, digest=call.digest)
            self._context.processes.leave_start_mark(call.id, mark)
        return found, call

    def register(self, run_id: str, proposals: Sequence[Proposal]) -> list[ApprovalAsk]:
        """Put calls of a running process before a person, or find them again; hand out none."""
        with self._context.change() as tx:
            task, run = tx.running(run_id)
            found: list[ApprovalAsk] = []
            for proposal in proposals:
                ask, _ = self._register_proposal(tx, task, run, proposal)
                found.append(ask)
                task = tx.rows.task(task.id)
        return found

    def find_named(self, run_id: str, key: str) -> tuple[ApprovalAsk, Call] | None:
        """Return the call that a process has named so, as it stands, with its ask."""
        with self._context.store.read() as view:
            run = view.run(task_of_run(run_id), number_of_run(run_id))
            found = _find_in_slot(view, slot_of(run.session_id, _call_key(key), 1), ApprovalAsk)
            return (found, view.call(found.task_id, found.call)) if found else None

    def _register_proposal(
        self, tx: Transaction, task: Task, run: Run, proposal: Proposal
    ) -> tuple[ApprovalAsk, Reason | NoReason | None]:
        """Ask about a call, or find the ask; return also why the call may start, if it may."""
        key = _call_key(proposal.key)
        turn = 1 if proposal.is_named else 1 + tx.rows.count_turns(run.id, key)
        slot = slot_of(task.session_id, key, turn)
        found = _earlier_proposal(tx, proposal, slot=slot)

        # What was approved must still have a reason to start; else a person is asked again
        call = tx.rows.call(task.id, found.call) if found else None
        reason: Reason | NoReason | None = None
        if found and call and call.state is CallState.APPROVED:
            reason = self._find_reason(tx.rows, call)
            if isinstance(reason, NoReason):
                tx.move(call, CallMove.WITHDRAW)
                if allows_ask(found.state, AskMove.WITHDRAW):
                    tx.settle_ask(found, AskMove.WITHDRAW, text=reason.why, by=POLICY)
                prompt = f"{proposal.prompt} ({reason.why})"
                proposal = msgspec.structs.replace(proposal, prompt=prompt)
                found = None
        if found is None:
            judgement = self._context.gate.judge(tx.rows, task, proposal.tool, proposal.body)
            found = _open_proposal(tx, task, run, proposal, judgement, slot=slot)
        tx.rows.add_turn(Turn(run_id=run.id, key=key, thing=found.id, left_open=found.is_open))
        _note_untold(tx, task, [found])
        return found, reason

    def _find_reason(self, view: View, call: Call) -> Reason | NoReason:
        mark = self._context.processes.start_mark(call.id, place="")
        if mark and not is_known(mark.place, call, view.newest_events(call.task_id, limit=-1)):
            why = "it was started before the store was set back, and may have run"
            return NoReason(why=why, ask=approval_of(view, call))
        return self._reasons.verify(view, call)

    def close_call(self, run_id: str, call: Call, move: CallMove) -> None:
        """Record how a call ended, as the process reports it that was handed the call."""
        with self._context.change() as tx:
            task, run = tx.running(run_id)
            tx.move_call(task.id, call.number, move)
            tx.tell(task.id, "call_closed", run=run.number, call=call.number, move=move.value)

    # --- answers ----------------------------------------------------------------------------------

    def answers(self, task_id: str) -> dict[str, str] | None:
        """Return the answers to a task's newest clarification, or None until all are there."""
        with self._context.store.read() as view:
            clarification = CLARIFICATION.read(view, task_id)
            asks = [view.ask(ask_id) for ask_id in clarification.asks] if clarification else []
        if not asks or any(ask.state is not AskState.ANSWERED for ask in asks):
            return None
        return {
            ask.name: answer
            for ask in asks
            if isinstance(ask, QuestionAsk) and (answer := ask.answer) is not None
        }

    def feedback(self, run: Run) -> list[str]:
        """Return what reviewers wanted changed in earlier runs of the same session, newest last."""
        if run.resumed_from is None:
            return []
        from adjourn.core.review import feedback_of  # seldom: most work is not reviewed

        with self._context.store.read() as view:
            reviews = [
                ask
                for ask in view.asks(run.task_id)
                if is_review(ask) and ask.state is AskState.ANSWERED
            ]
            told = [
                ask.reply
                for ask in reviews
                if view.run(run.task_id, ask.run).session_id == run.session_id
            ]
        return [feedback for text in told if (feedback := feedback_of(text))]

    def said_to_agent(self, run: Run) -> list[str]:
        """Return all that people said to an agent that had left, in its session, newest last.

        What reviewers wanted changed, and the texts of resumes.
        """
        if run.resumed_from is None:
            return []
        from adjourn.core.review import WANTS_CHANGES  # seldom: most agents hear nothing more

        with self._context.store.read() as view:
            is_reviewed = view.task(run.task_id).spec.review
            follow_ups = FOLLOW_UPS.read(view, run.task_id) or []
        wishes = self.feedback(run) if is_reviewed else []
        said = [f"{WANTS_CHANGES} {wish}" for wish in wishes]
        # The newest first, so that each stands behind the reviews that came before it
        for follow_up in reversed(follow_ups):
            said.insert(follow_up.reviews, follow_up.text)
        return said

    def respond(
        self, task_id: str, replies: Sequence[Reply], *, digest: bytes, by: Principal
    ) -> list[Ask]:
        """Record the answers of a response file, and which file that was.

        However often it is seen, it counts once.
        """
        with self._context.change() as tx:
            if RESPONSE.read(tx.rows, task_id) == digest:
                return []  # somebody took it in this very moment
            RESPONSE.keep(tx.rows, task_id, digest)
            return self._decisions.record(tx, replies, by=by)


def _untold(tx: Transaction, task: Task) -> frozenset[str] | None:
    """Return the asks of an agent's tools whose replies its session does not know; else None."""
    return frozenset(UNTOLD.read(tx.rows, task.id) or ()) if task.spec.is_driven else None


def _note_untold(tx: Transaction, task: Task, asks: Sequence[Ask]) -> None:
    """Record what an agent must be told when it goes on: what its tools left open.

    What is settled, the tool has just been told.
    """
    if not task.spec.is_driven:
        return
    kept = UNTOLD.read(tx.rows, task.id) or []
    seen = {ask.id for ask in asks}
    untold = [ask_id for ask_id in kept if ask_id not in seen]
    untold += [ask.id for ask in asks if ask.is_open]
    if untold != kept:
        UNTOLD.keep(tx.rows, task.id, untold)


def _call_key(key: str) -> str:
    return f"{ASKED}call:{key}"


def _register_question(
    tx: Transaction,
    task: Task,
    run: Run,
    question: Question,
    *,
    request: str = "",
    untold: frozenset[str] | None = None,
) -> tuple[QuestionAsk, Task]:
    """Register a question, or find it again with its answer, of the same request if it has one.

    A script starts again from its beginning: its n-th question is the n-th ask. An agent's session
    goes on: what its tools ask again is a new question, unless the answer is still `untold`.
    """
    key = f"{ASKED}{question.found_by or question.key}"
    number = 1 if untold is not None else 1 + tx.rows.count_turns(run.id, key)
    slot = slot_of(task.session_id, key + request, number)
    found = _find_in_slot(tx.rows, slot, QuestionAsk)
    while untold is not None and found and not found.is_open and found.id not in untold:
        number += 1
        slot = slot_of(task.session_id, key + request, number)
        found = _find_in_slot(tx.rows, slot, QuestionAsk)
    asked_now = (question.prompt, question.choices)
    if found and found.is_open and (found.prompt, found.choices) != asked_now:
        tx.withdraw(found)
        found = None
    if found is None:
        found, task = tx.open_question(
            task,
            run,
            prompt=question.prompt,
            key=question.key,
            slot=slot,
            choices=question.choices,
            expires_after=question.expires_after,
        )
    tx.rows.add_turn(Turn(run_id=run.id, key=key, thing=found.id, left_open=found.is_open))
    return found, task


def _register_request(
    tx: Transaction,
    task: Task,
    run: Run,
    request: Request,
    *,
    name: str = "",
    untold: frozenset[str] | None = None,
) -> tuple[Clarification, list[QuestionAsk]]:
    """Register all questions of a request, or find them again.

    Only one that leaves something open is a new clarification.
    """
    asks: list[QuestionAsk] = []
    for question in request.questions:
        found, task = _register_question(tx, task, run, question, request=name, untold=untold)
        asks.append(found)
    clarification = Clarification(
        id=f"clarif_{tx.new_id()}",
        request=request,
        asks=tuple(found.id for found in asks),
        asked_at=tx.now,
    )
    if any(found.is_open for found in asks):
        CLARIFICATION.keep(tx.rows, task.id, clarification)
        RESPONSE.drop(tx.rows, task.id)
    return clarification, asks


def register_left(tx: Transaction, task: Task, run: Run, left: Left) -> None:
    """Register what a process asks by the files that it left.

    A response to what it asked before stays one that was taken.
    """
    taken = RESPONSE.read(tx.rows, task.id)
    if left.request:
        # A process that only writes files does not ask again what was answered: its next request
        # may begin at Q1 again
        name = f"\n{sha256(left.checkpoint).hexdigest()}"
        _, asks = _register_request(
            tx, task, run, left.request, name=name, untold=_untold(tx, task)
        )
        _note_untold(tx, task, asks)
    if taken is not None and taken == left.response:
        RESPONSE.keep(tx.rows, task.id, taken)
    CHECKPOINT.keep(tx.rows, task.id, left.checkpoint)


def is_known_ask(view: View, task: Task, left: Left) -> bool:
    """Return whether the store has this checkpoint: it was answered, or it is being asked."""
    return CHECKPOINT.read(view, task.id) == left.checkpoint


def _earlier_proposal(tx: Transaction, proposal: Proposal, *, slot: str) -> ApprovalAsk | None:
    """Return what was asked before, unless its bytes were others, or its call failed.

    Then a person is asked again.
    """
    found = _find_in_slot(tx.rows, slot, ApprovalAsk)
    if found is None:
        return None
    call = tx.rows.call(found.task_id, found.call)
    original = ORIGINAL.read_of(tx.rows, call)  # what the process proposed, if a person edited it
    proposed = digest_of(original) if original is not None else call.digest
    if proposed == digest_of(proposal.body):
        return None if call.state is CallState.FAILED else found
    if found.is_open:
        tx.withdraw(found)
    elif call.state is CallState.APPROVED:
        tx.move(call, CallMove.WITHDRAW)
    return None


def _open_proposal(
    tx: Transaction, task: Task, run: Run, proposal: Proposal, judgement: Judgement, *, slot: str
) -> ApprovalAsk:
    """Ask a person about a call, or turn it down at once if the policy never allows it."""
    call = tx.new_tool_call(
        task, proposal.tool, proposal.body, state=CallState.PENDING, by=None, ask=task.asks + 1
    )
    counted = tx.save(task, calls=call.number)
    if proposal.editable is not None:
        EDITABLE.keep_of(tx.rows, call, proposal.editable)
    found, _ = tx.open_approval(
        counted,
        run,
        call.number,
        prompt=proposal.prompt,
        key=proposal.key,
        slot=slot,
        manifest=proposal.prompt,
        terms=judgement.terms_of_ask,
        expires_after=judgement.expiry(proposal.expires_after),
        remind_after=judgement.remind_after,
        escalate_to=judgement.escalate_to,
    )
    own_words = "its program asks a person before it makes this call"
    reasons = judgement.reasons_to_ask if judgement.terms_of_ask.override else ()
    WHY.of(found.id).keep(tx.rows, task.id, AskReason(reasons=(*reasons, own_words)))
    if not judgement.is_turned_down:
        return found
    tx.move(call, CallMove.REJECT)
    return tx.settle_ask(found, AskMove.REJECT, text=NOT_ALLOWED, by=POLICY)


def _find_in_slot(view: View, slot: str, kind: type[AnyAsk]) -> AnyAsk | None:
    """Return what an earlier run asked here, or refuse if that was something of another kind."""
    found = view.ask_in_slot(slot)
    if found is None or isinstance(found, kind):
        return found
    raise Misuse(
        f"ask {found.id} has this key, and it is {found.kind.noun}",
        way_out="give questions and calls keys of their own",
    )


def hand_out(tx: Transaction, run: Run, call: Call, reason: Reason) -> Call:
    """Let the process make its call.

    From here on only its own word, the end of its run or a person moves it.
    """
    claimed = tx.move(call, CallMove.CLAIM, claimed_by=run.id)
    handed_out = tx.move(claimed, CallMove.EXECUTE)
    tell_start(tx, run, handed_out, reason)
    return handed_out
