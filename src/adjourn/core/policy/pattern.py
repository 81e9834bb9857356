r"""Patterns for one word.

`*` is any text, `?` one character, `[a-z]` and `[!a-z]` one of a set; `\` takes the next literally.
"""

import re
from functools import lru_cache

import msgspec

REST = "**"  # as the last of several: any further words
_SPECIAL = frozenset("*?[\\")


class BadPattern(Exception):
    """A pattern means nothing; it says at which character, and why."""

    def __init__(self, offset: int, why: str) -> None:
        super().__init__(why)
        self.offset = offset
        self.why = why


class Pattern(msgspec.Struct, frozen=True):
    """A pattern that was read.

    What a word must begin with, end with and hold, and the expression if it is not literal.
    """

    head: str
    tail: str
    core: str
    expression: str | None = None

    @property
    def is_literal(self) -> bool:
        """Whether it stands for one word only."""
        return self.expression is None

    def matches(self, word: str, *, strictly: bool = False) -> bool:
        """Say whether a word fits.

        Strictly, a wildcard stands neither for the dash of an option nor for a way upwards.
        """
        if self.expression is None:
            return word == self.head
        return _compiled(self.expression).fullmatch(word) is not None and not (
            strictly and _escapes(word, self.head)
        )


@lru_cache(maxsize=32_768)
def _compiled(expression: str) -> re.Pattern[str]:
    """Compile what is needed, when it is.

    Most patterns of a large policy never meet a word that begins like them.
    """
    return re.compile(expression, re.DOTALL)


def _escapes(word: str, head: str) -> bool:
    return (word.startswith("-") and not head) or (".." in word and ".." in word.split("/"))


@lru_cache(maxsize=32_768)
def read_pattern(text: str) -> Pattern:
    """Return what a pattern means, or raise BadPattern."""
    if _SPECIAL.isdisjoint(text):
        return Pattern(text, text, text)
    pieces = _pieces(text)
    literals = [piece.literal for piece in pieces]
    head = _literal_run(literals)
    if None not in literals:
        return Pattern(head, head, head)
    return Pattern(
        head, _literal_run(literals[::-1])[::-1], _longest_run(literals), _expression(pieces)
    )


def quoted(word: str) -> str:
    """Return the pattern that matches this word and no other."""
    return "".join(f"\\{char}" if char in _SPECIAL else char for char in word)


def _literal_run(literals: list[str | None]) -> str:
    end = next((at for at, literal in enumerate(literals) if literal is None), len(literals))
    return "".join(literal for literal in literals[:end] if literal)


def _longest_run(literals: list[str | None]) -> str:
    runs = "".join("\0" if literal is None else literal for literal in literals).split("\0")
    return max(runs, key=len)


class _PatternPiece(msgspec.Struct, frozen=True):
    """One character of a pattern: itself, or what stands for others."""

    literal: str | None
    expression: str = ""


_ANY = _PatternPiece(None, "")
_ONE = _PatternPiece(None, ".")


def _pieces(text: str) -> list[_PatternPiece]:
    pieces: list[_PatternPiece] = []
    at = 0
    while at < len(text):
        piece, at = _piece(text, at)
        if piece is _ANY and pieces[-1:] == [_ANY]:
            raise BadPattern(
                at - 2,
                "`**` stands alone, as the last word, for any further words;"
                " a star itself is `\\*`",
            )
        pieces.append(piece)
    return pieces


def _piece(text: str, at: int) -> tuple[_PatternPiece, int]:
    match text[at]:
        case "*":
            return _ANY, at + 1
        case "?":
            return _ONE, at + 1
        case "[":
            return _set(text, at)
        case "\\":
            return _PatternPiece(_after_backslash(text, at)), at + 2
        case char:
            return _PatternPiece(char), at + 1


def _after_backslash(text: str, at: int) -> str:
    if at + 1 == len(text):
        raise BadPattern(at, "a backslash at the end escapes nothing; a backslash itself is `\\\\`")
    return text[at + 1]


def _set(text: str, start: int) -> tuple[_PatternPiece, int]:
    is_negated = text[start + 1 : start + 2] == "!"
    at = start + 1 + is_negated
    members: list[str] = []
    while text[at : at + 1] != "]":
        if at >= len(text):
            raise BadPattern(start, "the bracket is never closed; a bracket itself is `\\[`")
        member, at = _member(text, at)
        members.append(member)
    if not members:
        raise BadPattern(start, "nothing is in the brackets; a bracket itself is `\\[`")
    return _PatternPiece(None, f"[{'^' if is_negated else ''}{''.join(members)}]"), at + 1


def _member(text: str, at: int) -> tuple[str, int]:
    """Read a character of a set, or a range of them."""
    first, after = _char(text, at)
    if text[after : after + 1] != "-" or text[after + 1 : after + 2] in {"]", ""}:
        return re.escape(first), after
    last, after = _char(text, after + 1)
    if last < first:
        raise BadPattern(at, f"the range {first}-{last} runs backwards")
    return f"{re.escape(first)}-{re.escape(last)}", after


def _char(text: str, at: int) -> tuple[str, int]:
    return (_after_backslash(text, at), at + 2) if text[at] == "\\" else (text[at], at + 1)


def _expression(pieces: list[_PatternPiece]) -> str:
    """Write the expression so that no word makes it try again and again.

    What follows a star is taken where it first fits.
    """
    chunks: list[str] = [""]
    for piece in pieces:
        if piece is _ANY:
            chunks.append("")
        else:
            chunks[-1] += piece.expression if piece.literal is None else re.escape(piece.literal)
    first, *middle = chunks
    if not middle:
        return first
    return first + "".join(f"(?>.*?{chunk})" for chunk in middle[:-1]) + f".*{middle[-1]}"
