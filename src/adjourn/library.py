"""What a process inside a run can say to the people outside.

A program that must wait leaves with exit code 10.
"""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from adjourn.core.ask import Question, question_of
from adjourn.core.call import Approved, Once
from adjourn.core.clarification import Context, WorkState
from adjourn.core.errors import Misuse
from adjourn.core.text.when import milliseconds


def ask(
    prompt: str,
    *,
    choices: Sequence[str] = (),
    key: str | None = None,
    expires_after: str | None = None,
    linger: float | str = 0.0,
    verbose: bool | None = None,
) -> str:
    """Return the answer to a question.

    Without an answer, leave with exit code 10; the next run gets it here.

    `expires_after` is a time such as "8h"; `linger` is how long to wait for a quick answer:
    seconds, or such a time.
    """
    # Importing the library is cheap; a store is only opened inside a run
    from adjourn.wiring.inside import InsideRun

    question = question_of(
        prompt, key=key, choices=tuple(choices), expires_after=_span(expires_after)
    )
    with InsideRun.open(verbose=verbose) as inside:
        return inside.ask(question, linger=_seconds(linger))


def clarify(  # noqa: PLR0913 -- a request has many parts, all named and optional
    questions: Sequence[str | Question],
    *,
    blocked_at: str = "",
    reason: str = "",
    work_state: WorkState | None = None,
    context: Context | None = None,
    next_phase: str = "implementation",
    estimated_remaining_work: str = "unknown",
    tokens_burned: int = 0,
    linger: float | str | None = None,
    meanwhile: Iterable[Callable[[], object]] = (),
    verbose: bool | None = None,
) -> dict[str, str]:
    """Return the answers to several questions by their ids: Q1, Q2 and so on for mere texts.

    Without answers it writes the request, does what can be done `meanwhile`, lingers, writes the
    checkpoint and exits. It lingers for 60 seconds unless the store's `supervision.yaml` or
    `linger` (30, "5m") says otherwise.
    """
    # Importing the library is cheap; a store is only opened inside a run
    from adjourn.wiring.inside import AskDraft, InsideRun

    draft = AskDraft(
        blocked_at=blocked_at,
        reason=reason,
        work_state=work_state or WorkState(),
        context=context or Context(),
        next_phase=next_phase,
        estimated_remaining_work=estimated_remaining_work,
        tokens_burned=tokens_burned,
    )
    numbered = [
        item if isinstance(item, Question) else Question(prompt=item, key=f"Q{number}")
        for number, item in enumerate(questions, start=1)
    ]
    with InsideRun.open(verbose=verbose) as inside:
        return inside.clarify(
            numbered,
            draft,
            linger=None if linger is None else _seconds(linger),
            meanwhile=meanwhile,
        )


@contextmanager
def approval(
    prompt: str,
    *,
    tool: str,
    arguments: Mapping[str, object],
    key: str | None = None,
    expires_after: str | None = None,
    schema: Mapping[str, Any] | None = None,
    editable: bool = False,
) -> Generator[Approved, None, None]:
    """Let a person approve this very call, then make it inside the block, once.

    The value is what they approved with.

    Raises Rejected if they did not, and AlreadyDone if an earlier run made the call. Other
    arguments are another ask. With `editable`, the person may change the arguments before they
    approve: then make the call with `approved.arguments`, never with your own. A block that ends
    without having looked at changed arguments raises EditIgnored. `schema`, a part of JSON Schema,
    says what arguments must look like: your own, and those that a person gives.
    """
    # Importing the library is cheap; a store is only opened inside a run
    from adjourn.wiring.inside import InsideRun, proposal_of

    proposal = proposal_of(
        prompt,
        tool=tool,
        arguments=arguments,
        key=key,
        expires_after=_span(expires_after),
        schema=schema,
        editable=editable,
    )
    with InsideRun.open() as inside, inside.approval(proposal) as approved:
        yield approved


# --- for frameworks, which have names of their own for calls and keep a state of their own --------


class NamedCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call that a framework's agent wants to make, under the framework's own name for it."""

    id: str
    tool: str
    arguments: Mapping[str, Any]


def decide_calls(calls: Sequence[NamedCall]) -> dict[str, str | None]:
    """Return for each call why it was rejected, or None if it was approved.

    All are put before a person at once. While one is open, leave with exit code 10.
    """
    # Importing the library is cheap; a store is only opened inside a run
    from adjourn.wiring.inside import InsideRun, proposal_of

    proposals = [
        msgspec.structs.replace(
            proposal_of(
                f"wants to call {call.tool}", tool=call.tool, arguments=call.arguments, key=call.id
            ),
            is_named=True,
        )
        for call in calls
    ]
    with InsideRun.open() as inside:
        reasons = inside.decide(proposals) if proposals else []
    return {call.id: reason for call, reason in zip(calls, reasons, strict=True)}


@contextmanager
def make_once(call_id: str) -> Generator[Once, None, None]:
    """Make a call that was decided and approved, inside the block, once in all runs of the task.

    If `is_made`, an earlier run has made it, and `result` is what it returned. Else make it, and
    put into `result` what it returns, as JSON can carry it.
    """
    # Importing the library is cheap; a store is only opened inside a run
    from adjourn.wiring.inside import InsideRun

    with InsideRun.open() as inside, inside.once(call_id) as once:
        yield once


def session_name() -> str:
    """Return the name of the task's session: the same in each run, and another after a restart."""
    # Importing the library is cheap; a store is only opened inside a run
    from adjourn.wiring.inside import InsideRun

    with InsideRun.open() as inside:
        return inside.session_name


def keep_state(state: bytes) -> None:
    """Keep what a framework needs to go on in the next run of the task."""
    # Importing the library is cheap; a store is only opened inside a run
    from adjourn.wiring.inside import InsideRun

    with InsideRun.open() as inside:
        inside.keep_state(state)


def kept_state() -> bytes | None:
    """Return what a framework has kept since the last restart, if anything."""
    # Importing the library is cheap; a store is only opened inside a run
    from adjourn.wiring.inside import InsideRun

    with InsideRun.open() as inside:
        return inside.kept_state()


def _span(text: str | None) -> int | None:
    return _milliseconds(text) if text is not None else None


def _seconds(linger: float | str) -> float:
    return _milliseconds(linger) / 1000 if isinstance(linger, str) else linger


def _milliseconds(text: str) -> int:
    try:
        return milliseconds(text)
    except ValueError:
        raise Misuse(
            f"{text!r} is not a length of time", way_out="write it as 90s, 15m, 8h or 2d"
        ) from None
