"""What `resume` says, as replies.

Tool decisions or an answer, never both, and silence is a rejection.
"""

from collections.abc import Sequence

import msgspec

from adjourn.core.ask import ApprovalAsk, Ask, QuestionAsk, Reply, Verb, require_open
from adjourn.core.errors import Conflict, Misuse, NotAllowed
from adjourn.core.text.render import visible


class Resumption(msgspec.Struct, frozen=True, kw_only=True):
    """The words of a resume."""

    text: str | None = None
    approve: tuple[str, ...] = ()
    reject: tuple[str, ...] = ()
    approve_all: bool = False
    reject_all: bool = False
    answers: tuple[str, ...] = ()
    value: str | None = None
    reason: str | None = None
    input: str | None = None  # JSON that is passed on to an agent of others as it is
    limits: dict[str, str] = {}  # of the built-in agent, from now on
    override: str | None = None
    digests: dict[str, str] = {}  # of the calls that were shown, by the id of the ask

    @property
    def decides(self) -> bool:
        """Whether it names or covers tool calls."""
        return bool(self.approve or self.reject or self.approve_all or self.reject_all)

    @property
    def answers_something(self) -> bool:
        """Whether it carries an answer."""
        return self.text is not None or bool(self.answers)


PLAIN = Resumption()


# How a text begins that tells an agent of tasks which its tools started
TASKS_ENDED = "## TASKS THAT YOU STARTED HAVE ENDED"


class FollowUp(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent that had left is told, and how many reviews came before it.

    A person said it, or it tells what came of what the agent had left open.
    """

    text: str
    reviews: int = 0


def replies_of(resumption: Resumption, asks: Sequence[Ask]) -> list[Reply]:
    """Turn the words into replies to the asks of a task's last run."""
    if resumption.decides and resumption.answers_something:
        raise Misuse(
            "a resume carries tool decisions or an answer, not both",
            way_out="adjourn resume --help",
        )
    if not resumption.decides and (resumption.value is not None or resumption.reason is not None):
        raise Misuse(
            "--value and --reason go with a decision on a call", way_out="adjourn resume --help"
        )
    if resumption.override is not None and len(resumption.approve) != 1:
        raise Misuse(
            "--override goes with one --approve TC: name the one call that runs all the same",
            way_out="adjourn resume --help",
        )
    if resumption.decides:
        return _decisions(resumption, asks)
    if resumption.text is not None:
        return [_the_answer(resumption.text, asks)]
    return [_keyed_answer(words, asks) for words in resumption.answers]


def _decisions(resumption: Resumption, asks: Sequence[Ask]) -> list[Reply]:
    if resumption.approve_all and resumption.reject_all:
        raise Misuse(
            "--approve-all and --reject-all exclude each other", way_out="adjourn resume --help"
        )
    approved = {_named(word, asks).id for word in resumption.approve}
    rejected = {_named(word, asks).id for word in resumption.reject}
    if approved & rejected:
        raise Misuse("a call cannot be both approved and rejected", way_out="adjourn resume --help")
    pending = [ask for ask in asks if ask.is_open and isinstance(ask, ApprovalAsk)]
    if not pending:
        raise Conflict("no call is pending", way_out="adjourn inbox")
    covered = [
        ask
        for ask in pending
        if not resumption.approve_all or ask.id in approved | rejected or not ask.terms.by_name
    ]
    if not covered:
        first = pending[0]
        way_out = f"adjourn resume {first.task_id} --approve {first.tool_call_id}"
        if first.terms.override:
            raise NotAllowed(
                f"your policy says never: --approve-all does not cover {first.tool_call_id}",
                way_out=f'{way_out} --override "why it must run"',
            )
        raise NotAllowed(
            f"--approve-all does not cover {first.tool_call_id}: it must be named", way_out=way_out
        )
    return [_decision(resumption, ask, approved=approved, rejected=rejected) for ask in covered]


def _decision(resumption: Resumption, ask: Ask, *, approved: set[str], rejected: set[str]) -> Reply:
    is_approved = ask.id in approved or (resumption.approve_all and ask.id not in rejected)
    if is_approved:
        override = msgspec.UNSET if resumption.override is None else resumption.override
        return Reply(
            ask_id=ask.id,
            verb=Verb.APPROVE,
            text=resumption.value,
            override=override,
            digest=resumption.digests.get(ask.id),
        )
    return Reply(ask_id=ask.id, verb=Verb.REJECT, text=resumption.reason)


def _named(word: str, asks: Sequence[Ask]) -> ApprovalAsk:
    approvals = [ask for ask in asks if isinstance(ask, ApprovalAsk)]
    for ask in approvals:
        if word in {ask.tool_call_id, ask.id}:
            require_open(ask)
            return ask
    pending = ", ".join(visible(ask.tool_call_id) for ask in approvals if ask.is_open)
    if not pending:
        raise Conflict("no call is pending", way_out="adjourn inbox")
    raise Misuse(
        f"no call {visible(word)} is pending; pending: {pending}", way_out="adjourn resume --help"
    )


def _the_answer(text: str, asks: Sequence[Ask]) -> Reply:
    questions = [ask for ask in asks if isinstance(ask, QuestionAsk)]
    unanswered = [ask for ask in questions if ask.is_open]
    if len(unanswered) == 1:
        return Reply(ask_id=unanswered[0].id, verb=Verb.ANSWER, text=text)
    if not unanswered and questions:
        require_open(questions[-1])
    keys = ", ".join(visible(ask.name) for ask in unanswered) or "none"
    way_out = "say --answer KEY=TEXT for each" if unanswered else "leave the text out"
    raise Misuse(f"a text needs exactly one open question; open: {keys}", way_out=way_out)


def _keyed_answer(words: str, asks: Sequence[Ask]) -> Reply:
    open_keys = [ask for ask in asks if ask.is_open and isinstance(ask, QuestionAsk)]
    for ask in open_keys:
        for name in (ask.key, ask.id):
            if name and words.startswith(f"{name}="):
                return Reply(ask_id=ask.id, verb=Verb.ANSWER, text=words.removeprefix(f"{name}="))
    keys = ", ".join(visible(ask.name) for ask in open_keys) or "none"
    raise Misuse(
        f"--answer {visible(words)} fits no open question; open: {keys}",
        way_out="say --answer KEY=TEXT",
    )
