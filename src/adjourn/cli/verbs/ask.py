"""adjourn ask: inside a run, print the answer or leave a question."""

import os

import click

from adjourn.cli.options import DURATION, verb
from adjourn.cli.session import Session
from adjourn.cli.terminal import print_exactly
from adjourn.core import exits
from adjourn.core.ask import QuestionAsk, question_of
from adjourn.core.errors import Misuse


@verb("ask", prints_whole=True)
@click.argument("question")
@click.option(
    "--choice",
    "choices",
    multiple=True,
    metavar="TEXT",
    help="An allowed answer; repeat it for each.",
)
@click.option(
    "--key",
    metavar="NAME",
    help="The question's name; by default a digest of its text."
    " The n-th ask of a name gets the n-th answer.",
)
@click.option(
    "--expires-after",
    "expires",
    type=DURATION,
    metavar="TIME",
    help="Let it expire: 90s, 15m, 8h, 2d.",
)
def command(
    session: Session,
    *,
    question: str,
    choices: tuple[str, ...],
    key: str | None,
    expires: int | None,
) -> int:
    """Print the answer to QUESTION if there is one; else register it and exit 10.

    \b
    answer=$(adjourn ask "Deploy to prod?" --choice yes --choice no) || exit $?
    """  # noqa: D301 -- click keeps the lines of a paragraph that begins with a backspace
    run_id = os.environ.get("ADJOURN_RUN_ID")
    if not run_id:
        raise Misuse(
            "this is not inside a run, so it cannot ask a person",
            way_out="adjourn run -- YOUR-SCRIPT",
        )
    asked = question_of(question, key=key, choices=choices, expires_after=expires)
    ask = session.open_controller(for_asking=True).asks.ask(run_id, asked)
    answer = ask.answer
    if session.wants_json:
        session.is_copy = False  # the process needs its answer, whatever it is
        session.print_document(_document(ask, outcome="paused" if answer is None else "answered"))
    elif answer is not None:
        print_exactly(answer)
    elif session.verbose:
        session.warn(f"adjourn: waiting for an answer: {ask.id}")
    return exits.PAUSED if answer is None else exits.COMPLETED


def _document(ask: QuestionAsk, *, outcome: str) -> dict[str, object]:
    return {
        "schema_version": 1,
        "outcome": outcome,
        "ask_id": ask.id,
        "answer": ask.reply,
        "settled_by": ask.settlement.by if ask.settlement else None,
    }
