"""The one renderer: calls and words from outside, as a person may safely see them."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache

import msgspec

from adjourn.core.call import Json
from adjourn.core.task import Spec

# Begins with letters, so that a bidirectional terminal keeps it on the left whatever follows
AGENT_MARK = "agent │ "
MORE_MARK = "more │ "  # begins every row that continues the one above


class Cut(msgspec.Struct, frozen=True, kw_only=True):
    """How many characters of a value, and lines of a text, are shown, and what shows the rest."""

    limit: int
    rest: str
    lines: int = 40  # of a script, a file that is written, or a difference


WHOLE = Cut(limit=1 << 62, rest="", lines=1 << 62)


# ── Calls ─────────────────────────────────────────────────────────────────────────────────────────


def spelled(word: str) -> str:
    """Return a word of the operating system as JSON can hold it.

    What is not UTF-8 is spelled out.
    """
    return word.encode("utf-8", "backslashreplace").decode()


def visible(text: str) -> str:
    r"""Show part of a call on one line, so that no two texts look alike.

    Printable ASCII stands for itself; only a backslash is doubled. So do letters of the scripts in
    which one character is one shape, set from left to right: Latin, Greek, Cyrillic, kana, Han,
    Hangul. So do arrows, emoji (with a tone of skin, or people joined to one picture) and other
    signs that look like no letter, and whole words of Arabic, Persian, Hebrew, Hindi and Thai that
    are well formed and touch no ASCII, with the numbers beside them. Curly quotes and dashes are
    shown where they cannot be taken for those of a shell. All else is escaped: `\n`, `\r`, `\t`,
    `\x80` for a byte that is not UTF-8, `\{40 spaces}` for a wide gap, `\u{202e}` for the rest.

    A letter that Unicode lists as confusable with another is shown only where its neighbours rule
    the other out. A Greek or Cyrillic word must be of one alphabet and have a letter that no other
    alphabet has: `мир` is shown, but not an imitation of `copy`. Japanese is treated likewise where
    katakana meets its twins in Han and hiragana. Left to the reader's eye are twins that one
    alphabet has by itself (`0` and `O`), full width beside half width, and Han variants.
    """
    return _shown(_escaped(text))


def shortened(text: str, *, cut: Cut) -> str:
    """Show `text` as `visible` does, up to the limit, with how much is left out and how to see it.

    Long texts that begin alike still differ, by the digest of the whole.
    """
    return visible(text[: cut.limit]) + _remark(text, cut)


def argv_lines(argv: Sequence[str], *, cut: Cut = WHOLE) -> list[str]:
    """Show a command, one element a line, numbered and quoted; no two commands look alike."""
    return _numbered(argv, cut)


def call_lines(tool: str, arguments: Mapping[str, Json], *, cut: Cut = WHOLE) -> list[str]:
    """Show a call: the tool, then its arguments by name, lists and long texts over several lines.

    No two calls look alike.
    """
    names = sorted(arguments)
    lines = [_name(tool, cut)]
    for name in names[: cut.limit]:
        first, *more = _value_lines(arguments[name], cut)
        lines += [f"  {_name(name, cut)}:{first}", *(f"    {line}" for line in more)]
    if len(names) > cut.limit:
        lines.append(f"  {_left_out(len(names) - cut.limit, 'arguments', of=arguments, cut=cut)}")
    return lines


def command_line(argv: Sequence[str]) -> str:
    """Write a command so that it can be pasted into bash, which will take it for exactly `argv`."""
    return " ".join([*map(_program, argv[:1]), *map(_word, argv[1:])])


def title(spec: Spec, *, columns: int) -> str:
    """Show a task's command or prompt on one line, with how much of it is left out."""
    return clipped(
        command_line(spec.argv) if spec.prompt is None else f"{spec.runner}: {prose(spec.prompt)}",
        columns=columns,
    )


# ── Words ─────────────────────────────────────────────────────────────────────────────────────────


def prose(text: str) -> str:
    r"""Show words, in any script, on one line; two different texts never give the same line.

    What cannot be seen, stray or piled-up marks, and words that mix Latin with an alphabet like it
    are escaped as `\u{202e}`. A backslash stands for itself, unless it would read as such an
    escape. Some terminals set Hebrew and Arabic words from right to left, with digits beside them:
    in a table, such text belongs into the last column.
    """
    return _worded(text, _Spellings(_prose_spelling))


def block(text: str) -> str:
    """Show words or output of many lines.

    Lines stay lines, tabs become spaces, all else is as in `prose`.
    """
    spellings = _Spellings(_prose_spelling)
    spellings[ord("\n")] = "\n"
    return _worded(text.expandtabs(8), spellings)


def agent_words(text: str, *, columns: int = 80, cut: Cut = WHOLE) -> list[str]:
    """Show an agent's own words.

    Every row is marked as the agent's, and none is so long that it would wrap.
    """
    lines = block(text[: cut.limit]).split("\n")
    rows = [AGENT_MARK + row for line in lines for row in _rows(line, columns - len(AGENT_MARK))]
    return [*rows, _remark(text, cut).lstrip()] if len(text) > cut.limit else rows


# ── Columns ───────────────────────────────────────────────────────────────────────────────────────


def width(text: str) -> int:
    """Return how many columns of a terminal rendered text takes."""
    return len(text) if text.isascii() else sum(map(_cells, text))


def fit(text: str, *, columns: int) -> str:
    """Fill or cut rendered text to that many columns."""
    cell = clipped(text, columns=columns)
    return cell + " " * (columns - width(cell))


def clipped(text: str, *, columns: int) -> str:
    """Cut rendered text that takes more columns.

    A cut ends in the number of characters left out, as in `terraf…+123`.
    """
    if len(fitting_head(text, columns)) == len(text):
        return text
    head = fitting_head(text, columns - len(f"…+{len(text)}"))
    return f"{head}…+{len(text) - len(head)}"


def wrap(text: str, *, columns: int) -> str:
    """Break the lines that a terminal of that width would break, and mark each row that this makes.

    A row that the terminal makes begins with whatever text is at that place. Text of others that is
    long enough could so put a line on the screen that looks like ours.
    """
    lines = text.split("\n")
    return "\n".join(
        line if width(line) <= columns else f"\n{MORE_MARK}".join(fitting_rows(line, columns))
        for line in lines
    )


def word_rows(words: Sequence[str], *, columns: int) -> list[str]:
    """Return short words in rows that fit, one blank between them."""
    rows: list[str] = []
    for word in words:
        if rows and width(rows[-1]) + 1 + width(word) <= columns:
            rows[-1] += f" {word}"
        else:
            rows.append(word)
    return rows


def fitting_rows(line: str, columns: int) -> Iterator[str]:
    """Yield the rows of a line; the first has all columns, the others leave room for the mark."""
    start = used = 0
    room = max(columns, 1)
    for at, char in enumerate(line):
        cells = _cells(char)
        if used and used + cells > room:
            # Break after a space, unless that would leave the row half empty.
            space = line.rfind(" ", start + (at - start) // 2, at)
            end = space + 1 if space >= 0 else at
            yield line[start:end]
            start, used = end, width(line[end:at])
            room = max(columns - len(MORE_MARK), 1)
        used += cells
    yield line[start:]


def command_rows(head: str, command: str, *, columns: int) -> list[str]:
    """Lay out a command that a person may paste.

    Too long for one row, it goes on below, as a shell reads it.
    """
    words = re.findall(_SHELL_WORD, command)
    if width(head + command) <= columns or " ".join(words) != command:
        return [head + command]
    rows = [head + words[0]]
    for word in words[1:]:
        if width(f"{rows[-1]} {word} \\") <= columns:
            rows[-1] += f" {word}"
        else:
            rows[-1] += " \\"
            rows.append(f"    {word}")
    return rows


_SHELL_WORD = r"(?:\$'(?:[^'\\]|\\.)*'|'[^']*'|\\.|[^\s'\\])+"


@lru_cache(maxsize=4096)
def _cells(char: str) -> int:
    # Slow to import, and seldom needed
    from unicodedata import category, east_asian_width

    if char == "\ufe0f":  # many terminals make the sign before it two cells wide
        return 1
    if category(char) in {"Mn", "Me"} or char == "\u200d":
        return 0
    return 2 if east_asian_width(char) in {"W", "F"} or "🇦" <= char <= "🇿" else 1


def fitting_head(text: str, columns: int) -> str:
    """Return as much of the beginning of rendered text as fits into that many columns."""
    if text.isascii():
        return text[: max(columns, 0)]
    used = 0
    for at, char in enumerate(text):
        used += _cells(char)
        if used > columns:
            return text[:at]
    return text


def _rows(line: str, columns: int) -> Iterator[str]:
    """Break a line into rows, after a space where there is one."""
    start = used = 0
    for at, char in enumerate(line):
        cells = _cells(char)
        if used and used + cells > columns:
            end = line.rfind(" ", start, at) + 1 or at
            yield line[start:end]
            start, used = end, width(line[end:at])
        used += cells
    yield line[start:]


# ── How a call is laid out ────────────────────────────────────────────────────────────────────────


def _name(text: str, cut: Cut) -> str:
    bare = text.isascii() and text.replace("-", "_").isidentifier()
    return text if bare and len(text) <= cut.limit else _text(text, cut)


def _value_lines(value: Json, cut: Cut) -> list[str]:
    """Return what follows the colon, and the lines below it."""
    match value:
        case str() if "\n" in value[: cut.limit][:-1]:
            return ["", *_text_lines(value, cut)]
        case str() | Mapping() | [] | None | bool() | int() | float():
            return [f" {_element(value, cut)}"]
        case _:
            return ["", *_numbered(value, cut)]


def _text_lines(text: str, cut: Cut) -> list[str]:
    spellings = _Spellings(_call_spelling)
    spellings[ord("\n")] = '\\n"\n"'  # the escape, and a new line in quotes of its own
    lines = _shown(_in_quotes(text[: cut.limit]), spellings).removesuffix('\n""').split("\n")
    return [*lines[:-1], lines[-1] + _remark(text, cut)]


def _numbered(items: Sequence[Json], cut: Cut) -> list[str]:
    lines: list[str] = []
    margin, room = len(str(len(items) - 1)), cut.limit
    for number, item in enumerate(items):
        if room <= 0:
            return [*lines, _left_out(len(items) - number, "elements", of=items, cut=cut)]
        lines.append(f"{number:>{margin}}  {_element(item, cut)}")
        room -= len(lines[-1])
    return lines


def _element(value: Json, cut: Cut) -> str:
    if isinstance(value, str):
        return _text(value, cut)
    canonical = _canonical(value)
    return _shown(canonical[: cut.limit]) + _remark(canonical, cut)


def _text(text: str, cut: Cut) -> str:
    return _shown(_in_quotes(text[: cut.limit])) + _remark(text, cut)


def _remark(text: str, cut: Cut) -> str:
    if len(text) <= cut.limit:
        return ""
    return f" {_left_out(len(text) - cut.limit, 'characters', of=text, cut=cut)}"


def _left_out(count: int, what: str, *, of: Json, cut: Cut) -> str:
    """Say what is missing. The ellipsis is ours alone: in a call, one from outside is escaped."""
    # Slow to import, and seldom needed
    from hashlib import sha256

    whole = of if isinstance(of, str) else _canonical(of)
    # Long enough that nobody finds two alike
    digest = sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return f"… {count:,} more {what}, sha256 {digest}. The rest: {cut.rest}"


class _Piece(str):
    """A finished piece of JSON text, among values still to be written."""

    __slots__ = ()


def _canonical(value: Json) -> str:
    """Write JSON with sorted keys, its strings with nothing but quotes and backslashes escaped."""
    pieces: list[str] = []
    todo = [value]  # not recursion: nesting may be deeper than the stack
    while todo:
        match todo.pop():
            case _Piece() as piece:
                pieces.append(piece)
            case str() as text:
                pieces.append(_in_quotes(text))
            case None | bool() | int() | float() as scalar:
                pieces.append(_scalar(scalar))
            case Mapping() as mapping:
                entries = [
                    [_Piece(f"{_in_quotes(key)}: "), mapping[key]] for key in sorted(mapping)
                ]
                todo += reversed(_enclosed("{", entries, "}"))
            case items:
                todo += reversed(_enclosed("[", [[item] for item in items], "]"))
    return "".join(pieces)


def _enclosed(opening: str, entries: list[list[Json]], closing: str) -> list[Json]:
    parts: list[Json] = [_Piece(opening)]
    for number, entry in enumerate(entries):
        parts += [_Piece(", "), *entry] if number else entry
    return [*parts, _Piece(closing)]


def _scalar(value: float | None) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case float():
            return repr(value).replace("inf", "Infinity").replace("nan", "NaN")
        case _:
            return _integer(value)


def _integer(value: int) -> str:
    try:
        return str(value)
    except ValueError:  # Python refuses to write thousands of digits, but not in hexadecimal
        return hex(value)


def _in_quotes(text: str) -> str:
    """Put text in quotes.

    Those inside are escaped, so that a long line, wrapped by a terminal, cannot pass for two.
    """
    return '"' + _escaped(text).replace('"', '\\"') + '"'


# ── How a command is written for bash ─────────────────────────────────────────────────────────────

_BARE = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789@%+=:,./_-")
_KEYWORDS = " case coproc do done elif else esac fi for function if select then time until while "
_IN_DOLLAR_QUOTES = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _program(text: str) -> str:
    word = _word(text)
    return f"'{text}'" if word == text and ("=" in text or f" {text} " in _KEYWORDS) else word


def _word(text: str) -> str:
    if text and _BARE.issuperset(text):
        return text
    if _shown(text) == text:
        return "'" + text.replace("'", "'\\''") + "'"
    return "$'" + text.translate(_Spellings(_dollar_spelling)) + "'"


def _dollar_spelling(char: str) -> str:
    if " " <= char <= "~" or char in _IN_DOLLAR_QUOTES:
        return _IN_DOLLAR_QUOTES.get(char, char)
    raw = char.encode("utf-8", "surrogateescape" if _is_stray_byte(char) else "surrogatepass")
    return "".join(f"\\x{byte:02x}" for byte in raw)


# ── Which characters are shown, and how the others are spelled ────────────────────────────────────

# Letters that a call may show, as parts of a regular expression's class. None looks like another of
# its own class or like
# ASCII; the letters of `*_ONLY` look like none of the other classes either (Unicode 17.0,
# confusables.txt).
_LATIN = (
    r"\u00c0-\u00cf\u00d1-\u00d6\u00d8-\u00f6\u00f8-\u00fd\u00ff-\u0113\u0116-\u012b\u012d-\u0130\u0134-\u0137\u0139"
    r"\u013b-\u013e\u0141-\u0148\u014a-\u017e\u01a0\u01a1\u01af\u01b0\u1ea0-\u1ef9"
)
_GREEK = r"\u0386\u0388-\u038a\u038c\u038e-\u03a1\u03a3-\u03ce"
_GREEK_ONLY = (
    r"\u0389\u038f\u0390\u0394\u039e\u03a3\u03a8\u03a9\u03ad\u03ae\u03b0\u03b4\u03b6\u03bb\u03bc"
    r"\u03be\u03c2\u03c7-\u03c9\u03ce"
)
_CYRILLIC = (
    r"\u0400-\u045f\u0490-\u0493\u0496\u0497\u049a\u049b\u04a2\u04a3\u04b0\u04b1\u04ba\u04bb\u04d8"
    r"\u04d9\u04e8\u04e9"
)
_CYRILLIC_ONLY = (
    r"\u0402-\u0404\u0409-\u040f\u0411\u0414\u0416\u0418\u0419\u0426-\u042b\u042d-\u042f\u0432\u0434\u0436-\u0439"
    r"\u043b-\u043d\u0446\u0447\u0449-\u044f\u0452\u0459\u045a\u045c-\u045f\u0490-\u0493\u0496\u0497\u049a\u049b"
    r"\u04a2\u04a3\u04b0\u04b1\u04ba\u04d8\u04d9\u04e9"
)
_KATAKANA = r"\u30a1-\u30fa\u30fc-\u30fe"
_KATAKANA_TWINS = r"\u30a8\u30ab\u30bf\u30c8\u30cb\u30cf\u30d8-\u30da\u30ed\u30fc"
_THEIR_TWINS = r"\u5de5\u529b\u5915\u535c\u4e8c\u516b\u3078-\u307a\u53e3\u4e00"
_HIRAGANA = r"\u3041-\u3096\u309d\u309e"
_HAN = (
    r"\u3400-\u4db5\u4e00-\u4e27\u4e29-\u4e35\u4e37-\u4e3e\u4e40-\u4e84\u4e86-\u4eba\u4ebc-\u56d6"
    r"\u56d8-\u9fef"
)
_CJK_STOPS = r"\u3001\u3002\u300c-\u300f\u3010\u3011"
_HANGUL = r"\uac00-\ud7a3"

# Prose: characters that print as nothing though Unicode counts them as printable, and alphabets
# with letters like Latin's.
_BLANK = (
    r"\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    r"\U00013441\U00013442\U00016fe4\U0001d159\U000e0100-\U000e01ef"
)
_LIKE_LATIN = (
    r"\u0370-\u058f\u10a0-\u10ff\u13a0-\u167f\u1c80-\u1c8f\u1f00-\u1fff\u2c80-\u2dff\ua4d0-\ua4ff"
    r"\ua640-\ua69f\uab70-\uabbf"
)

# Signs that look like nothing in ASCII, as parts of a class: arrows, money, emoji
_SIGNS = (
    r"\u00a1-\u00a3\u00a5\u00a7\u00a9\u00ab\u00ae\u00b0\u00b1\u00bb\u00bf\u2020-\u2022\u20ac"
    r"\u2190-\u2199\u21a6\u21d0-\u21d4\u2248\u2260\u2264\u2265\u2600-\u262f\u2638-\u266e"
    r"\u2670-\u2689\u2690-\u26ab\u26ad-\u26ff\u2705\u2713\u2714\u2728\u274c\u2764\u27a1\u2b05-\u2b07"
    r"\U0001f300-\U0001f3fa\U0001f400-\U0001f53d\U0001f54b-\U0001f5ff\U0001f600-\U0001f64f"
    r"\U0001f680-\U0001f6ff\U0001f7e0-\U0001f7eb\U0001f90c-\U0001f9ff\U0001fa70-\U0001faff"
)
# People, tones of skin, and what a joiner puts beside a person. A person that stands right before
# one of these looks like both joined, on some terminals: there the second is escaped.
_PERSON = r"\U0001f466-\U0001f469\U0001f474-\U0001f476\U0001f9d1-\U0001f9d3"
_TONE = r"\U0001f3fb-\U0001f3ff"
_BESIDE = (
    _PERSON + r"\U0001f33e\U0001f373\U0001f37c\U0001f393\U0001f3a4\U0001f3a8\U0001f3eb\U0001f3ed"
    r"\U0001f4bb\U0001f4bc\U0001f527\U0001f52c\U0001f680\U0001f692\U0001f91d\U0001f9af-\U0001f9b3\U0001f9bc\U0001f9bd"
)
_WITH_TONE = (
    r"\u261d\u270a-\u270d\U0001f385\U0001f3c2-\U0001f3c4\U0001f3c7\U0001f3ca-\U0001f3cc\U0001f442\U0001f443"
    r"\U0001f446-\U0001f450\U0001f466-\U0001f478\U0001f47c\U0001f481-\U0001f483\U0001f485-\U0001f487"
    r"\U0001f4aa\U0001f590\U0001f595\U0001f596\U0001f645-\U0001f647\U0001f64b-\U0001f64f\U0001f6b4-\U0001f6b6"
    r"\U0001f90c\U0001f90f\U0001f918-\U0001f91f\U0001f926\U0001f930-\U0001f939\U0001f9d1-\U0001f9dd\U0001faf0-\U0001faf8"
)
_JOINED = f"[{_PERSON}][{_TONE}]?(?:\u200d[{_BESIDE}][{_TONE}]?)+(?![\u200d\ufe0f])"
# Signs that are a picture only with the selector behind them, and a plain sign without: ⚠️ and ⚠
_PICTURED = (
    r"\u00a9\u00ae\u203c\u2049\u2122\u2139\u2194-\u2199\u21a9\u21aa\u2328\u23cf\u23ed-\u23ef\u23f1\u23f2"
    r"\u23f8-\u23fa\u25aa\u25ab\u25b6\u25c0\u25fb\u25fc\u2600-\u2604\u260e\u2611\u2618\u261d\u2620\u2622"
    r"\u2623\u2626\u262a\u262e\u262f\u2638-\u263a\u2640\u2642\u265f\u2660\u2663\u2665\u2666\u2668\u267b"
    r"\u267e\u2692\u2694-\u2697\u2699\u269b\u269c\u26a0\u26a7\u26b0\u26b1\u26c8\u26cf\u26d1\u26d3\u26e9"
    r"\u26f0\u26f1\u26f4\u26f7-\u26f9\u2702\u2708\u2709\u270c\u270d\u270f\u2712\u2714\u2716\u271d\u2721"
    r"\u2733\u2734\u2744\u2747\u2763\u2764\u27a1\u2934\u2935\u2b05-\u2b07\U0001f321\U0001f324-\U0001f32c"
    r"\U0001f336\U0001f37d\U0001f396\U0001f397\U0001f399-\U0001f39b\U0001f39e\U0001f39f\U0001f3cb-\U0001f3ce"
    r"\U0001f3d4-\U0001f3df\U0001f3f3\U0001f3f5\U0001f3f7\U0001f43f\U0001f441\U0001f4fd\U0001f549\U0001f54a"
    r"\U0001f56f\U0001f570\U0001f573-\U0001f579\U0001f587\U0001f58a-\U0001f58d\U0001f590\U0001f5a5\U0001f5a8"
    r"\U0001f5b1\U0001f5b2\U0001f5bc\U0001f5c2-\U0001f5c4\U0001f5d1-\U0001f5d3\U0001f5dc-\U0001f5de\U0001f5e1"
    r"\U0001f5e3\U0001f5e8\U0001f5ef\U0001f5f3\U0001f5fa\U0001f6cb\U0001f6cd-\U0001f6cf\U0001f6e0-\U0001f6e5"
    r"\U0001f6e9\U0001f6f0\U0001f6f3"
)
# Syllables of scripts with marks, each in the one order in which it can be written: no two of them
# look alike. Not in these: a vowel sign after a vowel, two vowel signs, marks in another order.
_CONSONANT = r"(?:[\u0915-\u0939]|[\u0915-\u0927\u092a-\u0930\u0932\u0935-\u0939]\u093c)"
_DEVANAGARI = (
    rf"(?:(?:{_CONSONANT}\u094d)*{_CONSONANT}[\u093e-\u094d]?|[\u0905-\u090b\u090f\u0910\u0913\u0914])"
    r"[\u0901-\u0903]?"
)
_THAI = (
    r"[\u0e40-\u0e44]?[\u0e01-\u0e2e][\u0e31\u0e34-\u0e39]?[\u0e47-\u0e4c]?"
    r"[\u0e30\u0e32\u0e33]?\u0e46?"
)
# Arabic and Persian have letters and digits that look alike. Which of the two a text is depends
# only on what does not, and then each of these stands for one letter: the other's is escaped.
_ARABIC = r"\u0621-\u063a\u0641-\u064a"
_PERSIAN = r"\u0621-\u063a\u0641\u0642\u0644-\u0648\u067e\u0686\u0698\u06af\u06a9\u06cc"
_SAME_IN_PERSIAN = str.maketrans("\u0643\u0649\u064a", "\u06a9\u06cc\u06cc")
# Digits of a script: all of them, and those that look like no letter or digit of ASCII. A number is
# shown if one of these is in it, and a letter of its script is in the same text.
_DIGITS = {
    "arabic": (r"\u0660-\u0669", r"\u0662-\u0664\u0666", r"\u0621-\u064a"),
    "persian": (r"\u06f0-\u06f9", r"\u06f2-\u06f4\u06f6", r"\u0621-\u06cc"),
    "devanagari": (r"\u0966-\u096f", r"\u0967\u0968\u096b-\u096f", r"\u0905-\u0939"),
    "thai": (r"\u0e50-\u0e59", r"\u0e51-\u0e59", r"\u0e01-\u0e2e"),
}
_HEBREW = r"\u05d0-\u05ea"
# What makes quotes and dashes mean something to a shell, and what a bidirectional terminal moves to
# another place beside a word that is set from right to left
_CODE = re.compile(r"[;|&$`<>{}]")
_NOT_PROSE = re.compile(r"[0-9/=*+~^%#@\[\]()-]")

_GAP = " " * 32  # enough to push what follows to another row or out of sight


class _Spellings(dict[int, str]):
    """What to write for each character, worked out when it is first met."""

    def __init__(self, spell: Callable[[str], str]) -> None:
        super().__init__()
        self._spell = spell

    def __missing__(self, code: int) -> str:
        spelling = self[code] = self._spell(chr(code))
        return spelling


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\")


def _shown(text: str, spellings: _Spellings | None = None) -> str:
    """Spell out what a call must not show as it is; backslashes are escaped already."""
    if _GAP in text:
        text = re.sub(f"{_GAP}+", lambda gap: f"\\{{{len(gap[0])} spaces}}", text)
    if text.isascii() and text.isprintable():
        return text
    spellings = spellings or _Spellings(_call_spelling)
    if text.isascii():
        return text.translate(spellings)
    # What is readable and cannot deceive stands for itself. None of it is a letter of those
    # alphabets among which suspects are looked for.
    is_code = _CODE.search(text) is not None
    is_prose = not is_code and _NOT_PROSE.search(text) is None
    has_others = _others().search(text) is not None  # a quick way past most texts
    is_persian = has_others and bool(_persian().search(text.translate(_SAME_IN_PERSIAN)))
    scripts = tuple(
        name
        for name, (digits, _, letters) in (_DIGITS.items() if has_others else ())
        if re.search(f"[{digits}]", text) and re.search(f"[{letters}]", text)
    )
    readable = _readable(is_code=is_code, is_prose=is_prose, is_persian=is_persian, scripts=scripts)
    parts: list[str] = readable.split(text)
    for at, part in enumerate(parts):
        if at % 2 == 0 or not part.replace("\u200d", "").isprintable():
            parts[at] = _spelled(part, spellings, suspects=_suspects(), escape=_call_escape)
    return "".join(parts)


def _worded(text: str, spellings: _Spellings) -> str:
    text = text.replace("\\u{", "\\u{5c}u{")
    if text.isascii():
        return text if text.isprintable() else text.translate(spellings)
    # A selector that makes a picture of a sign is seen. It takes no part in what follows.
    if "\ufe0f" in text:
        pieces: list[str] = re.split(f"([{_PICTURED}]\ufe0f(?![\u200d\u20e3\ufe0f]))", text)
        if len(pieces) > 1:
            pieces[::2] = [_worded_piece(piece, spellings) for piece in pieces[::2]]
            return "".join(pieces)
    return _worded_piece(text, spellings)


def _worded_piece(text: str, spellings: _Spellings) -> str:
    # Between people a joiner is seen: it makes one picture of them
    parts: list[str] = re.split(f"((?<!\u200d){_JOINED})", text) if "\u200d" in text else [text]
    parts[::2] = [
        _spelled(part, spellings, suspects=_mixed_words(), escape=_escape) for part in parts[::2]
    ]
    words = "".join(parts)
    marks = _marks(words)
    return _spelled(words, {}, suspects=_stray(marks), escape=_escape) if marks else words


def _spelled(
    text: str, spellings: dict[int, str], *, suspects: re.Pattern[str], escape: Callable[[str], str]
) -> str:
    """Spell a text, and escape whatever is not ASCII in the stretches that are suspect."""
    escapes = _Spellings(lambda char: char if char.isascii() else escape(char))
    stretches: list[str] = suspects.split(text)
    stretches[::2] = [stretch.translate(spellings) for stretch in stretches[::2]]
    stretches[1::2] = [stretch.translate(escapes) for stretch in stretches[1::2]]
    return "".join(stretches)


def _call_spelling(char: str) -> str:
    return char if " " <= char <= "~" or _letters().match(char) else _call_escape(char)


def _call_escape(char: str) -> str:
    if char in "\n\r\t":
        return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}[char]
    return f"\\x{ord(char) - 0xDC00:02x}" if _is_stray_byte(char) else _escape(char)


def _is_stray_byte(char: str) -> bool:
    """Tell whether Python put this character in the place of a byte that is not UTF-8."""
    return "\udc80" <= char <= "\udcff"


def _prose_spelling(char: str) -> str:
    return char if char.isprintable() and not _hides(char) else _escape(char)


def _hides(char: str) -> bool:
    """Return whether a printable character prints nothing, or marks its neighbour."""
    # Slow to import, and seldom needed
    from unicodedata import category, combining

    return combining(char) == 1 or category(char) == "Me" or _blanks().match(char) is not None


def _escape(char: str) -> str:
    return f"\\u{{{ord(char):x}}}"


@cache
def _letters() -> re.Pattern[str]:
    return re.compile(
        f"[{_LATIN}{_GREEK}{_CYRILLIC}{_KATAKANA}{_HIRAGANA}{_HAN}{_CJK_STOPS}{_HANGUL}]"
    )


@cache
def _readable(
    *, is_code: bool, is_prose: bool, is_persian: bool, scripts: tuple[str, ...]
) -> re.Pattern[str]:
    """Find what a call shows although it is neither ASCII nor a letter of one shape."""
    apart = r"(?<![A-Za-z0-9_])", r"(?![A-Za-z0-9_])"
    beside = f"(?:(?<![{_PERSON}])(?<![{_PERSON}][{_TONE}])|(?![{_BESIDE}]))"
    ways = [
        f"(?<!\u200d){beside}{_JOINED}",
        f"(?<!\u200d){beside}[{_WITH_TONE}][{_TONE}](?!\u200d)",
        f"{beside}[{_SIGNS}]",
        f"{apart[0]}(?<![\\u0900-\\u097f])(?:{_DEVANAGARI})++(?![\u0900-\u097f]){apart[1]}",
        f"{apart[0]}(?<![\u0e00-\u0e7f])(?:{_THAI})++(?![\u0e00-\u0e7f]){apart[1]}",
        f"(?<=[{_HAN}{_HIRAGANA}{_KATAKANA}{_HANGUL}])[\uff01\uff0c\uff1a\uff1b\uff1f]",
    ]
    if not is_code:
        # Not where an option may begin, and not between two parts of a name
        ways += [r"(?<= )[\u2013\u2014](?=[ \"]|$)", r"[\u201c-\u201e]"]
        ways.append(r"(?<=[^\W\d_])\u2019(?=[^\W\d_])")
    if is_prose:
        ways += [
            f"{apart[0]}(?<![{letters}])[{letters}]{{2,}}+[\u060c\u061b\u061f]?(?![{letters}]){apart[1]}"
            for letters in (_PERSIAN if is_persian else _ARABIC, _HEBREW)
        ]
    is_shown = {"arabic": is_prose and not is_persian, "persian": is_prose and is_persian}
    for digits, certain, _ in (_DIGITS[name] for name in scripts if is_shown.get(name, True)):
        number = f"(?=[{digits}]*[{certain}])[{digits}]++"
        ways.append(f"{apart[0]}(?<![{digits}]){number}{apart[1]}")
    # A quick way past everything else
    begins = r"\u0590-\u06ff\u0900-\u097f\u0e00-\u0e7f\u2010-\u201f\uff01-\uff1f" + _SIGNS
    return re.compile(f"((?:(?=[{begins}{_WITH_TONE}])(?:{'|'.join(ways)}))++)")


@cache
def _persian() -> re.Pattern[str]:
    """Find what makes a text Persian: a letter that Arabic has not, or one of its little words.

    These do not count beside the article or the feminine ending of Arabic.
    """
    words = (
        r"\u06a9\u0647|\u0627\u06cc\u0646|\u0628\u0631\u0627\u06cc|\u0645\u06cc|\u0622\u06cc\u0627|\u0627\u0632"
        r"|\u0631\u0627|\u062f\u0631|\u0627\u0633\u062a|\u0634\u062f|\u0634\u0648\u062f"
    )
    arabic = r"\u0629|\b\u0627\u0644"
    return re.compile(rf"(?s)[\u067e\u0686\u0698\u06af]|\A(?!.*(?:{arabic})).*\b(?:{words})\b")


@cache
def _others() -> re.Pattern[str]:
    return re.compile(r"[\u0600-\u06ff\u0900-\u097f\u0e00-\u0e7f]")


@cache
def _blanks() -> re.Pattern[str]:
    return re.compile(f"[{_BLANK}]")


@cache
def _suspects() -> re.Pattern[str]:
    """Find letters of a call that could be taken for others.

    A Greek or Cyrillic word that is mixed, or has only letters that other alphabets share (3 and 6
    are like two of them). A katakana word that Han and hiragana could imitate throughout, and what
    imitates katakana beside katakana.
    """
    latin = f"A-Za-z36{_LATIN}"
    word = f"{latin}{_GREEK}{_CYRILLIC}"
    honest = "|".join(
        f"(?>[{alphabet}]*[{only}])[{alphabet}]*+(?![{word}])"
        for alphabet, only in ((_GREEK, _GREEK_ONLY), (_CYRILLIC, _CYRILLIC_ONLY))
    )
    return re.compile(
        f"(?=[{word}{_KATAKANA_TWINS}{_THEIR_TWINS}])"  # a quick way past everything else
        f"((?:(?<![{word}])(?!{honest})[{latin}]*+[{_GREEK}{_CYRILLIC}][{word}]*+"
        f"|(?<![{_KATAKANA}])[{_KATAKANA_TWINS}]++(?![{_KATAKANA}])"
        f"|[{_THEIR_TWINS}](?=[{_KATAKANA}])|(?<=[{_KATAKANA}])[{_THEIR_TWINS}])++)"
    )


@cache
def _mixed_words() -> re.Pattern[str]:
    latin = r"A-Za-z\u00c0-\u024f"
    word = f"{latin}{_LIKE_LATIN}"
    return re.compile(
        f"((?<![{word}])(?:[{latin}]++[{_LIKE_LATIN}]|[{_LIKE_LATIN}]++[{latin}])[{word}]*+)"
    )


def _marks(text: str) -> str:
    # Slow to import, and seldom needed
    from unicodedata import category

    return "".join(sorted(char for char in set(text) if category(char) in {"Mn", "Mc"}))


def _stray(marks: str) -> re.Pattern[str]:
    """Find marks that are not among the first four on a letter.

    They would pile up, or settle on what is not theirs.
    """
    placed = "".join(rf"(?<![^\W_]{f'[{marks}]' * before})" for before in range(4))
    return re.compile(rf"(?=[^\x00-\x7f])(?=[{marks}])({placed}[{marks}]++)")
