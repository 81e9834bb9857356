"""Commands and shell text as lines that a person could paste, wherever those cannot mislead."""

from collections.abc import Sequence

from adjourn.core.text.render import command_line

DIGITS = 8  # of a digest, for the eye
_LONGEST_LINE = 150  # two rows of a customary terminal


def pasted_line(argv: Sequence[str]) -> str | None:
    """Return a command as one line that could be pasted, or None where it could mislead.

    It misleads where a shell would need more than plain quotes, where something looks like nothing
    or like something else, and where it is too long to be read at once.
    """
    text = command_line(argv)
    is_whole = all(word and word.strip() == word for word in argv)
    is_readable = is_whole and all(map(_is_plain, argv)) and _is_plain(text)
    return f"$ {text}" if is_readable else None


def script_lines(text: str) -> list[str] | None:
    """Return shell text as a shell shows it while it is typed, or None where it could mislead."""
    lines = text.removesuffix("\n").split("\n")
    is_readable = bool(text.strip()) and all(map(_is_plain, filter(None, lines)))
    return (
        [f"{'>' if at else '$'} {each}" for at, each in enumerate(lines)] if is_readable else None
    )


def _is_plain(text: str) -> bool:
    is_ascii = text.isascii() and text.isprintable()
    # An indent stands out; a gap within a line may hide what follows it
    return (
        is_ascii
        and text.rstrip() == text
        and "  " not in text.lstrip()
        and len(text) <= _LONGEST_LINE
    )
