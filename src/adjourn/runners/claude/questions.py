"""AskUserQuestion: what Claude Code asks a person becomes questions of adjourn."""

from typing import Any

import msgspec

from adjourn.core.ask import Question, QuestionAsk
from adjourn.core.errors import Misuse

ASK_USER = "AskUserQuestion"


class Option(msgspec.Struct):
    """One of the answers that the model has thought of."""

    label: str
    description: str = ""


class AskedQuestion(msgspec.Struct, rename="camel"):
    """One question."""

    question: str
    multi_select: bool = False
    options: list[Option] = []

    def prompt(self) -> str:
        """Return the question as a person reads it.

        An answer may be a number, a label, or any other words.
        """
        listed = [
            f"{number}. {each.label}{_dash(each.description)}"
            for number, each in enumerate(self.options, 1)
        ]
        several = ["(one or several, parted by commas)"] if self.multi_select else []
        return "\n".join([self.question, *listed, *several])

    def meaning(self, reply: str) -> str:
        """Return the labels that a reply names, or the reply itself."""
        if not self.multi_select:
            return self._label(reply) or reply
        labels = [self._label(part) for part in reply.split(",")]
        return ", ".join(label for label in labels if label) if all(labels) else reply

    def _label(self, word: str) -> str | None:
        wanted = word.strip()
        numbered = {str(number): each.label for number, each in enumerate(self.options, 1)}
        labelled = {each.label.casefold(): each.label for each in self.options}
        return labelled.get(wanted.casefold()) or numbered.get(wanted)


class _Input(msgspec.Struct):
    questions: list[AskedQuestion]


def questions_in(arguments: dict[str, Any]) -> list[AskedQuestion]:
    """Read what is asked, or refuse what is no question."""
    try:
        return msgspec.convert(arguments, _Input).questions
    except msgspec.ValidationError as error:
        raise Misuse(f"these are no questions: {error}") from error


def as_asked(asked: AskedQuestion, key: str) -> Question:
    """Return a question as adjourn asks it."""
    return Question(prompt=asked.prompt(), key=key)


def with_answers(arguments: dict[str, Any], asks: list[QuestionAsk]) -> dict[str, Any]:
    """Return the input that tells Claude Code the answers."""
    asked = questions_in(arguments)
    answers = {
        each.question: each.meaning(ask.reply or "") for each, ask in zip(asked, asks, strict=True)
    }
    return {**arguments, "answers": answers}


def _dash(text: str) -> str:
    return f" -- {text}" if text else ""
