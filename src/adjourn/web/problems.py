"""Errors as HTTP tells them: application/problem+json (RFC 9457), from the one tree of errors."""

from http import HTTPStatus

import msgspec
from starlette.responses import Response

from adjourn.core.ask import Ask
from adjourn.core.documents import ItemDoc, failure
from adjourn.core.errors import (
    AdjournError,
    AlreadySettled,
    Ambiguous,
    CannotResume,
    Conflict,
    Misuse,
    NotAllowed,
    NotFound,
    StoreProblem,
    StoreRefused,
)
from adjourn.core.redact import Redactor
from adjourn.core.text.when import stamp

PROBLEM = "application/problem+json"
_RETRY = 2  # seconds

# The first that fits an error counts
_STATUSES: tuple[tuple[type[AdjournError], int], ...] = (
    (Ambiguous, 409),
    (NotFound, 404),
    (Misuse, 422),
    (Conflict, 409),
    (CannotResume, 409),
    (NotAllowed, 403),
    (StoreRefused, 503),
    (StoreProblem, 503),
)


class SettledDoc(msgspec.Struct, frozen=True, kw_only=True):
    """Who was first, when, and what they said."""

    ask: str
    state: str
    by: str
    at: str
    reply: str | None


class Settled(AlreadySettled):
    """The ask has its reply; it says whose, for machines too."""

    settled: SettledDoc | None = None

    @classmethod
    def of(cls, error: AlreadySettled, ask: Ask) -> "Settled":
        """Return the error with whatever the ask says of its reply."""
        made, settled = cls(error.sentence, way_out=error.way_out), ask.settlement
        if settled:
            made.settled = SettledDoc(
                ask=ask.id,
                state=settled.state,
                by=settled.by,
                at=stamp(settled.at),
                reply=settled.reply,
            )
        return made


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What went wrong, why, and what helps."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    way_out: str | None = None
    items: tuple[ItemDoc, ...] | msgspec.UnsetType = msgspec.UNSET  # of several replies
    settled: SettledDoc | msgspec.UnsetType = msgspec.UNSET  # of an ask that had its reply


class HttpRefusal(AdjournError):
    """A request that HTTP itself has a status for."""

    def __init__(
        self,
        status: int,
        code: str,
        sentence: str,
        *,
        way_out: str = "",
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(sentence, way_out=way_out)
        self.status = status
        self.code = code
        self.headers = headers or {}


def status_of(error: AdjournError) -> int:
    """Return the HTTP status that an error has."""
    if isinstance(error, HttpRefusal):
        return error.status
    return next((status for kind, status in _STATUSES if isinstance(error, kind)), 500)


def problem_of(error: AdjournError) -> Problem:
    """Describe an error, with the sentence and the way out that every surface shows."""
    told = failure(error)
    return Problem(
        type=f"urn:adjourn:error:{error.code}",
        title=error.code.replace("_", " "),
        status=status_of(error),
        detail=told.error.message,
        code=error.code,
        way_out=told.error.way_out,
        items=told.items,
        settled=(error.settled if isinstance(error, Settled) else None) or msgspec.UNSET,
    )


def problem_response(error: AdjournError, redactor: Redactor | None = None) -> Response:
    """Return the response for an error, without secrets."""
    problem = problem_of(error)
    document = redactor.document(problem) if redactor else problem
    headers = dict(error.headers) if isinstance(error, HttpRefusal) else {}
    if problem.status == HTTPStatus.SERVICE_UNAVAILABLE:
        headers["Retry-After"] = str(_RETRY)
    return Response(msgspec.json.encode(document), problem.status, headers, PROBLEM)
