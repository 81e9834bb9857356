"""adjourn clarify: inside a run, print several answers, or leave with a checkpoint."""

from typing import BinaryIO

import click

from adjourn.cli.options import DURATION, verb
from adjourn.cli.session import Session
from adjourn.cli.terminal import print_exactly
from adjourn.core import exits
from adjourn.core.ask import Question
from adjourn.core.clarification import Request, checkpoint_schema
from adjourn.core.errors import Misuse

_WAY_OUT = "adjourn clarify --help"


@verb("clarify", prints_whole=True, finds_store=False)
@click.argument("questions", nargs=-1, metavar="[QUESTION]...")
@click.option(
    "--from",
    "request",
    type=click.File("rb"),
    metavar="FILE",
    help="Read the questions from a request in YAML or JSON.",
)
@click.option(
    "--checkpoint",
    type=click.File("rb"),
    metavar="FILE",
    help="What to keep of the work so far: a checkpoint in JSON.",
)
@click.option(
    "--linger",
    type=DURATION,
    metavar="TIME",
    help="Wait that long for quick answers: 0s, 30s, 5m (default: 60s).",
)
@click.option(
    "--schema", is_flag=True, help="Print the JSON Schema of a checkpoint, and do nothing else."
)
def command(
    session: Session,
    *,
    schema: bool,
    questions: tuple[str, ...],
    request: BinaryIO | None,
    checkpoint: BinaryIO | None,
    linger: int | None,
) -> int:
    """Print the answers to all QUESTIONs, one a line; without them, register them and exit 10.

    \b
    adjourn clarify "Which pattern?" "Who reviews it?" > answers || exit $?
    { read -r pattern; read -r reviewer; } < answers
    """  # noqa: D301 -- click keeps the lines of a paragraph that begins with a backspace
    if schema:
        session.is_copy = False
        session.print_document(checkpoint_schema())
        return exits.COMPLETED
    if bool(questions) == bool(request):
        raise Misuse("name the questions, or the file that has them", way_out=_WAY_OUT)
    # The library is imported by scripts that may never ask
    from adjourn.wiring.inside import TOO_LARGE, InsideRun, draft_of, read_request_of

    asked = (
        read_request_of(request.read(TOO_LARGE), name=request.name)
        if request
        else _numbered(questions)
    )
    draft = draft_of(asked, checkpoint.read(TOO_LARGE) if checkpoint else None)
    try:
        with InsideRun.open() as inside:
            answers = inside.clarify(
                asked.questions, draft, linger=None if linger is None else linger / 1000
            )
    except SystemExit:
        return _left(session)
    _say(session, answers)
    return exits.COMPLETED


def _numbered(questions: tuple[str, ...]) -> Request:
    return Request(
        questions=tuple(
            Question(key=f"Q{number}", prompt=text)
            for number, text in enumerate(questions, start=1)
        )
    )


def _left(session: Session) -> int:
    if session.wants_json:
        session.print_document({"schema_version": 1, "outcome": "paused", "answers": None})
    return exits.PAUSED


def _say(session: Session, answers: dict[str, str]) -> None:
    if session.wants_json:
        session.print_document({"schema_version": 1, "outcome": "answered", "answers": answers})
        return
    for answer in answers.values():
        # A line is an answer; JSON has them as they are
        print_exactly(answer.replace("\n", r"\n"))
