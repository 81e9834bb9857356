"""Shell text, as far as it can be understood for certain.

Plain words, quotes, and `|`, `&&`, `||`, `;` between commands.
"""

import re
from collections.abc import Iterator

import msgspec

Words = tuple[str, ...]

MOST_PROGRAMS = 64  # words of what may be a command that are looked for on PATH

_BLANK = frozenset(" \t")
_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789@%+=:,./_-")
_OPERATORS = frozenset({"|", "||", "&&", ";"})
_ACTIVE_IN_DOUBLE_QUOTES = frozenset("$`\\!")
_KEYWORDS = (
    "if then else elif fi case esac for select while until do done in function time coproc "
    "repeat foreach end always "
    "nocorrect noglob"
)
# Commands that a shell carries out itself and that can change what a later word means, or run words
# that are hidden in others.
# Left out are those that only print or say yes or no: `echo`, `true`, `false`, `:`, `pwd`.
_BUILTINS = (
    ". [ alias autoload bg bind break builtin bye caller cd chdir command compctl compgen "
    "complete compopt continue declare dirs "
    "disable disown echotc echoti emulate enable eval exec exit export fc fg float functions "
    "getln getopts hash history "
    "integer jobs kill let limit local log logout mapfile nameref popd print printf private "
    "pushd pushln r read readarray "
    "readonly rehash return sched set setopt shift shopt source stat suspend test times trap "
    "ttyctl type typeset ulimit umask "
    "unalias unfunction unhash unlimit unset unsetopt vared wait whence where which zcompile "
    "zformat zftp zle zmodload "
    "zparseopts zprof zpty zregexparse zsocket zstyle zsystem ztcp"
)
_NO_COMMANDS = frozenset(_KEYWORDS.split())
_NOT_FOR_SURE = frozenset(_BUILTINS.split())
_LONGEST = 100_000
_MOST_COMMANDS = 1_000


class Text(msgspec.Struct, frozen=True, kw_only=True):
    """What was made out of a shell text.

    Its commands, and what in it is not understood, in words.
    """

    commands: tuple[Words, ...] = ()
    doubts: tuple[str, ...] = ()


class _Unclear(Exception):
    """The text says something that is not understood here."""


def read_text(text: str) -> Text:
    """Return the commands of a shell text if all of it is understood.

    Else why not, and no commands.
    """
    try:
        commands = tuple(_words(piece) for piece in _cut(text))
    except _Unclear as unclear:
        return Text(doubts=(str(unclear),))
    return Text(commands=commands)


def segments(text: str) -> Iterator[Words]:
    """Yield the words of a text that is not understood, cut where commands may end.

    One may begin at every word.
    """
    plain = re.sub(_IFS, " ", text.replace("\\\n", ""))
    for reading in dict.fromkeys((plain, _expanded(plain))):
        yield from _loose_segments(reading)
        yield from _crude_segments(reading)


# --- what is understood ---------------------------------------------------------------------------


def _cut(text: str) -> list[str]:
    """Cut a text at its operators, once every character of it is known to mean what it seems to."""
    if len(text) > _LONGEST:
        raise _Unclear(f"the shell text has more than {_LONGEST:,} characters")
    pieces: list[str] = []
    start = at = 0
    while at < len(text):
        char = text[at]
        if char in "'\"":
            at = _after_quote(text, at)
        elif char in "|&;":
            end = at + len(_operator(text, at))
            pieces.append(text[start:at])
            start = at = end
        elif char in _PLAIN or char in _BLANK:
            at += 1
        else:
            raise _Unclear(f"the shell text has {_named(char)}")
    pieces.append(text[start:])
    if len(pieces) > _MOST_COMMANDS:
        raise _Unclear(f"the shell text has more than {_MOST_COMMANDS:,} commands")
    return pieces


def _operator(text: str, at: int) -> str:
    end = at
    while end < len(text) and text[end] in "|&;":
        end += 1
    if text[at:end] not in _OPERATORS:
        raise _Unclear(f"the shell text has `{text[at:end][:8]}`")
    return text[at:end]


def _after_quote(text: str, start: int) -> int:
    end = text.find(text[start], start + 1)
    if end < 0:
        raise _Unclear("the shell text has a quote that is never closed")
    inside = text[start + 1 : end]
    active = _ACTIVE_IN_DOUBLE_QUOTES.intersection(inside) if text[start] == '"' else ()
    hidden = [*active, *(char for char in inside if not char.isprintable())]
    if hidden:
        raise _Unclear(f"the shell text has {_named(min(hidden))} in quotes")
    return end + 1


def _words(piece: str) -> Words:
    from shlex import split  # seldom needed

    words = tuple(split(piece))
    if not words:
        raise _Unclear("the shell text has an operator without a command")
    program = words[0]
    if any(word.startswith("=") for word in words):  # some shells put the path of a command there
        raise _Unclear("the shell text has a word that begins with `=`")
    if "=" in program or program in _NO_COMMANDS or program[:1] in {"", "-", "%", "+"}:
        raise _Unclear(f"the shell text has `{shown_program(program)}` where a command begins")
    if program in _NOT_FOR_SURE:
        raise _Unclear(f"the shell text has `{program}`, which can change what the rest means")
    return words


def shown_program(program: str) -> str:
    """Return the beginning of a program's name, as a person may safely see it."""
    # Most commands start without it (bench start)
    from adjourn.core.text.render import visible

    return visible(program[:40])


def _named(char: str) -> str:
    if char == "\n":
        return "a new line"
    if char in "'\"`":
        return {"'": "a quote", '"': "a quote", "`": "a backtick"}[char]
    return (
        f"`{char}`" if char.isascii() and char.isprintable() else f"the character U+{ord(char):04X}"
    )


# --- what can be guessed --------------------------------------------------------------------------

_PARTING = "|&;()<>{}$`\r"
_SEPARATORS = str.maketrans(_PARTING, "\n" * len(_PARTING))
_IFS = r"\$IFS\b|\$\{IFS[^}]*\}"  # a blank, if nobody set it to something else
_QUOTES = str.maketrans("", "", "'\"\\")


def _loose_segments(text: str) -> list[Words]:
    """Split at everything that could part commands, and drop what quotes.

    A word in quotes stays with its neighbours.
    """
    lines = text.translate(_SEPARATORS).split("\n")
    return [tuple(words) for line in lines if (words := line.translate(_QUOTES).split())]


def _crude_segments(text: str) -> list[Words]:
    """Split at quotes, too: what is in them may be a command for another shell."""
    return _loose_segments(text.replace("'", "\n").replace('"', "\n"))


# What a shell makes of a text before it splits it, as far as that can be guessed. None of these
# makes a command harmless: they only add readings in which a rule that forbids may match.
# Compiled when they are first used: most commands have no such text (bench resume).
_ANSI_QUOTES = r"(?s)\$'((?:[^'\\]|\\.)*)'"
_ESCAPE = r"(?s)\\(x[0-9A-Fa-f]{1,2}|u[0-9A-Fa-f]{1,4}|U[0-9A-Fa-f]{1,8}|[0-7]{1,3}|.)"
_PRINTED = (
    r"(?:\$\(|`)\s*(?:echo|printf|which|type\s+-P|command\s+-v)\s+(?:-\w+\s+)?([^()`]*?)\s*[)`]"
)
_NOTHING_PRINTED = r"\$\(\s*\)|``"
_ASSIGNED = r"(?<![\w$])([A-Za-z_]\w{0,63})=('[^']*'|\"[^\"]*\"|[^\s;|&()]*)"
_VARIABLE = (
    r"\$(?:\{[#!]?([A-Za-z_]\w*|[@*#?!$0-9-])(?::?[-=+?]([^}]*)|[^}]*)\}|([A-Za-z_]\w*|[@*0-9]))"
)
_BRACES = r"([^\s{};|&()`]{0,64})\{([^{}\s]*,[^{}\s]*)\}([^\s{};|&()`]{0,64})"
_REDIRECTION = r"(?:\d{0,3}|&)(?:<<<|<<-?|<>|>>|>\||[<>]&?)[ \t]*[^\s;|&()<>]+"
_ROUNDS = 3  # of what stands in one another
_LONGEST_READING = 4 * _LONGEST


def _expanded(text: str) -> str:
    """Return a text as it may read once a shell has expanded it."""
    text = re.sub(_ANSI_QUOTES, lambda found: re.sub(_ESCAPE, _escaped, found[1]), text)
    text = re.sub(_REDIRECTION, " ", text.replace('$"', '"'))
    values = {name: value.strip("'\"") for name, value in re.findall(_ASSIGNED, text)}
    for _ in range(_ROUNDS):
        before = text
        text = re.sub(_PRINTED, r"\1", re.sub(_NOTHING_PRINTED, "", text))
        text = re.sub(
            _VARIABLE, lambda found: str(values.get(found[1] or found[3], found[2] or "")), text
        )
        text = re.sub(_BRACES, _alternatives, text)
        if text == before or len(text) > _LONGEST_READING:
            break
    return text


def _escaped(found: re.Match[str]) -> str:
    code = found[1]
    if code[0] in "xuU" and len(code) > 1:
        number = int(code[1:], 16)
        return chr(number) if number < 0x110000 else ""  # noqa: PLR2004 -- the end of Unicode
    if code[0] in "01234567":
        return chr(int(code, 8) & 0xFF)
    return {"n": "\n", "t": "\t", "r": "\r"}.get(code, code)


def _alternatives(found: re.Match[str]) -> str:
    return " ".join(f"{found[1]}{each}{found[3]}" for each in found[2].split(","))
