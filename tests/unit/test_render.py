# ruff: noqa: RUF001 -- letters that look like others are the subject
import json
import re
import subprocess
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from itertools import zip_longest
from time import process_time

import pyte
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wcwidth import wcwidth

from adjourn.core.call import Json
from adjourn.core.text.render import (
    AGENT_MARK,
    Cut,
    agent_words,
    argv_lines,
    block,
    call_lines,
    command_line,
    fit,
    prose,
    shortened,
    visible,
    width,
)
from tests.hostile import HOSTILE, HOSTILE_WORDS, JOINER, LARGE, MARKS
from tests.needs import needs

SMALL_AND_HEADS = [text[:10_000] for text in HOSTILE]
SMALL = [text for text in HOSTILE if text not in LARGE]
EVERY_CHARACTER = list(
    map(
        chr,
        [*range(0x14000), *range(0x1D000, 0x20100), *range(0xE0000, 0xE0200), 0xF0000, 0x10FFFF],
    )
)
CUT = Cut(limit=200, rest="adjourn show a1 --full")
TWO_MEGABYTES = [
    *LARGE,
    "\u202e" * 2_000_000,
    "с " * 1_000_000,
    "口ロ" * 1_000_000,
    "\\" * 2_000_000,
    "жa" * 1_000_000,
    "e\u0301" * 1_000_000,
]

# Letters that Unicode lists as confusable, and that may be shown: Latin and its twins in Greek and
# Cyrillic, Han's in katakana.
TWINS = (
    "OΟО IΙІ 3З 6б AΑА BΒВ CС EΕЕ HΗН JЈ KΚК MΜМ NΝ PΡР SЅ TΤТ XΧХ YΥУ ZΖ aαа bЬ cс eе hһ iιі jј oοо pρр rг sѕ uυ vν wш xх yγу "
    "ÁΆ ÈЀ ÉΈ ËЁ ÍΊ ÏΪЇ ÓΌ ÝΎ ßβ áά èѐ ëё íί ïϊї óό úύ üϋ ħћ ŋη ŕѓ ŸΫ ΓГ ΘӨ ΛЛ ΠП ΦФ εє κк πп τт φф "
    "へヘ べベ ぺペ 工エ 力カ 夕タ 卜ト 二ニ 八ハ 口ロ 一ー"
)
TWINS_OF = {letter: twins for twins in TWINS.split() for letter in twins}
UNMISTAKABLE = "ЖяΔψé漢アあ한-2 "

hostile = st.text(
    st.characters()
    | st.sampled_from("\\\"'\n\t\x1b\u202e\u200b\u0301\ufe0f\udc80 …u{}nsx234")
    | st.sampled_from(TWINS)
)
fragments = st.lists(
    st.sampled_from(
        [
            *MARKS,
            "\\",
            "\\u{",
            "\\u{202e}",
            "\\n",
            "\\x80",
            "\\{40 spaces}",
            "\u202e",
            "\n",
            "\udc80",
            '"',
            " " * 40,
            "мир",
            "copy",
            "u{5c}",
        ]
    ),
).map("".join)
texts = hostile | fragments | st.text()
numbers = st.integers() | st.floats()
values: st.SearchStrategy[Json] = st.recursive(
    st.none()
    | st.booleans()
    | numbers
    | texts
    | st.sampled_from(["1", "true", "null", "[]", "{}", '"', "nan"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
calls = st.tuples(texts, st.dictionaries(texts, values, max_size=4))


# ── Reading back ──────────────────────────────────────────────────────────────────────────────────

ESCAPE = re.compile(r'\\(?:u\{([0-9a-f]+)\}|x([0-9a-f]{2})|\{(\d+) spaces\}|([nrt\\"]))')
LETTERS = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", '"': '"'}


def _unescaped(escape: re.Match[str]) -> str:
    code, byte, spaces, letter = escape.groups()
    if code:
        return chr(int(code, 16))
    if byte:
        return chr(0xDC00 + int(byte, 16))
    return " " * int(spaces) if spaces else LETTERS[letter]


def read(shown: str) -> str:
    return ESCAPE.sub(_unescaped, shown)


def read_prose(shown: str) -> str:
    return re.sub(r"\\u\{([0-9a-f]+)\}", lambda escape: chr(int(escape[1], 16)), shown)


def read_json(shown: str) -> Json:
    """Read a value from its line, by way of the parser in the standard library."""
    strings: list[str] = []

    def put_aside(literal: re.Match[str]) -> str:
        strings.append(read(literal[0][1:-1]))
        return f'"{len(strings) - 1}"'

    def put_back(value: Json) -> Json:
        match value:
            case str():
                return strings[int(value)]
            case Mapping():
                return {strings[int(key)]: put_back(inner) for key, inner in value.items()}
            case [*items]:
                return [put_back(item) for item in items]
            case _:
                return value

    return put_back(json.loads(re.sub(r'"(?:[^"\\]|\\.)*"', put_aside, shown)))


def read_argv(lines: Sequence[str]) -> list[Json]:
    return [
        read_json(line.split("  ", 1)[1] if line[0] != " " else line.lstrip().split("  ", 1)[1])
        for line in lines
    ]


def read_name(shown: str) -> Json:
    return read_json(shown) if shown.startswith('"') else shown


def read_call(lines: Sequence[str]) -> tuple[Json, dict[Json, Json]]:
    """Read a call back from what a person sees of it, and from nothing else."""
    arguments: dict[Json, Json] = {}
    for entry in re.findall(r"^  \S.*(?:\n    .*)*", "\n".join(lines[1:]), re.MULTILINE):
        name, value = re.fullmatch(r'  ("(?:[^"\\]|\\.)*"|[^:]*):(.*)', entry, re.DOTALL).groups()  # type: ignore[union-attr] # the pattern fits every entry
        arguments[read_name(name)] = read_value(value)
    return read_name(lines[0]), arguments


def read_value(shown: str) -> Json:
    first, *below = shown.split("\n")
    if first:
        return read_json(first[1:])
    if below[0].lstrip().startswith('"'):
        return "".join(str(read_json(line)) for line in below)
    return read_argv([line[4:] for line in below])


def exactly(value: object) -> str:
    """Tell 1 from True and 1.0, and let a NaN equal itself."""
    if isinstance(value, dict):
        return repr(sorted((repr(key), exactly(inner)) for key, inner in value.items()))
    return f"[{','.join(map(exactly, value))}]" if isinstance(value, list) else repr(value)


@given(texts)
@settings(max_examples=1000, deadline=None)
def test_what_is_shown_reads_back_as_what_it_was(text: str) -> None:
    assert read(visible(text)) == text
    assert read_prose(prose(text)) == text


def test_hostile_text_reads_back_as_what_it_was() -> None:
    for text in SMALL:
        assert read(visible(text)) == text
        assert read_prose(prose(text)) == text


def test_every_character_reads_back() -> None:
    text = "-".join(EVERY_CHARACTER)
    assert read(visible(text)) == text
    assert read_prose(prose(text)) == text


@given(st.lists(texts))
@settings(max_examples=400, deadline=None)
def test_a_command_reads_back_from_its_lines(argv: list[str]) -> None:
    lines = argv_lines(argv)
    assert len(lines) == len(argv)
    assert read_argv(lines) == argv


@given(calls)
@settings(max_examples=600, deadline=None)
def test_a_call_reads_back_from_its_lines_so_no_two_look_alike(
    call: tuple[str, dict[str, Json]],
) -> None:
    tool, arguments = read_call(call_lines(*call))
    assert (tool, exactly(arguments)) == (call[0], exactly(call[1]))


@given(calls, calls)
@settings(max_examples=400, deadline=None)
def test_two_calls_look_alike_only_if_they_are_one(
    one: tuple[str, dict[str, Json]], other: tuple[str, dict[str, Json]]
) -> None:
    same = (one[0], exactly(one[1])) == (other[0], exactly(other[1]))
    assert (call_lines(*one) == call_lines(*other)) is same


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"n": 1}, {"n": "1"}),
        ({"n": 1}, {"n": True}),
        ({"n": 1}, {"n": 1.0}),
        ({"n": 0.0}, {"n": -0.0}),
        ({"n": None}, {"n": "null"}),
        ({"n": []}, {"n": {}}),
        ({"n": []}, {"n": [[]]}),
        ({"n": ["a", "b"]}, {"n": ["a b"]}),
        ({"n": "a\nb"}, {"n": ["a\n", "b"]}),
        ({"n": "a\nb"}, {"n": 'a\n"\n    "b'}),
        ({"n": "x", "m": "y"}, {"n": 'x"\n  m: "y'}),
        ({"a: 1\n  b": 2}, {"a": 1, "b": 2}),
        ({"": ""}, {}),
        ({"n": 10**5000}, {"n": 10**5000 + 1}),
    ],
)
def test_neighbouring_calls_look_different(one: dict[str, Json], other: dict[str, Json]) -> None:
    assert call_lines("tool", one) != call_lines("tool", other)


def test_the_order_of_keys_makes_no_difference() -> None:
    assert call_lines("t", {"a": 1, "b": {"c": 2, "d": 3}}) == call_lines(
        "t", {"b": {"d": 3, "c": 2}, "a": 1}
    )


def test_a_call_may_be_nested_deeper_than_the_stack() -> None:
    value: Json = []
    for _ in range(100_000):
        value = [value]
    assert call_lines("t", {"a": {"b": value}})[1].count("[") == 100_001


def test_a_call_is_laid_out_for_reading() -> None:
    arguments: dict[str, Json] = {
        "path": "a b",
        "content": "#!/bin/sh\nexit\n",
        "argv": ["ls", ""],
        "mode": {"b": 1, "a": None},
        "x": [],
    }
    assert call_lines("write_file", arguments) == [
        "write_file",
        "  argv:",
        '    0  "ls"',
        '    1  ""',
        "  content:",
        '    "#!/bin/sh\\n"',
        '    "exit\\n"',
        '  mode: {"a": null, "b": 1}',
        '  path: "a b"',
        "  x: []",
    ]


# ── Nothing hidden ────────────────────────────────────────────────────────────────────────────────

IGNORED_BY_FONTS = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


# What a call may show beside ASCII and letters, and what of it Unicode has another spelling for
STOPS = "、。「」『』【】，：；？！،؛؟“”„–—’"
SIGN = re.compile("[¡-£¥§©«®°±»¿†-•€←-↙↦⇐-⇔≈≠≤≥☀-⛿✅✓✔✨❌❤➡⬅-⬇\U0001f300-\U0001faff]")
WIDE = "，：；？！\u0e33"
MARKED_SCRIPTS = re.compile("[\u0900-\u0963\u0e00-\u0e4e]")
SET_FROM_THE_RIGHT = re.compile("[\u05d0-\u05ea\u0621-\u064a\u067e\u0686\u0698\u06a9\u06af\u06cc]")
NUMBER = re.compile("[٠-٩]*[٢-٤٦][٠-٩]*|[۰-۹]*[۲-۴۶][۰-۹]*|[०-९]*[१२५-९][०-९]*|[๐-๙]*[๑-๙][๐-๙]*")


def assert_plain(shown: str) -> None:
    shown = JOINER.sub("", NUMBER.sub("", shown))
    for char in set(shown) - set(map(chr, range(32, 127))):
        assert char.isprintable(), char
        is_known = char in STOPS or SIGN.match(char) or MARKED_SCRIPTS.match(char)
        assert char.isalpha() or is_known, char
        is_from_left = unicodedata.bidirectional(char) == "L" or not char.isalpha()
        assert is_from_left or SET_FROM_THE_RIGHT.match(char), char
        assert not unicodedata.combining(char) or MARKED_SCRIPTS.match(char), char
    narrow = re.sub(f"[{WIDE}]", "", shown)
    assert unicodedata.normalize("NFKC", narrow) == narrow
    assert not IGNORED_BY_FONTS.search(shown)


# A sign that the selector makes a picture of: the picture is wider than the sign, and has colours
PICTURED = re.compile("([^\\w\\s]|\u2139)\ufe0f(?![\u200d\u20e3\ufe0f])")


def is_made_a_picture(found: "re.Match[str]") -> bool:
    sign = found[1]
    is_sign = sign in "‼⁉ℹ" or unicodedata.category(sign) in {"So", "Sm"}
    return is_sign and wcwidth(sign) == 1


def assert_harmless(shown: str) -> None:
    shown = JOINER.sub("", shown)
    shown = PICTURED.sub(lambda found: "" if is_made_a_picture(found) else found[0], shown)
    for char in set(shown):
        assert char.isprintable(), char
        assert unicodedata.category(char) != "Me", char
        assert unicodedata.combining(char) != 1, char
    assert not IGNORED_BY_FONTS.search(shown)
    for pile in PILE.finditer(shown):
        assert shown[pile.start() - 1 : pile.start()].isalnum()
        assert len(pile[0]) <= 4


PILE = re.compile(
    f"[{''.join(char for char in map(chr, range(0x110000)) if unicodedata.category(char) in {'Mn', 'Mc'})}]+"
)


def test_a_call_shows_only_ascii_and_plain_letters() -> None:
    for text in SMALL_AND_HEADS:
        assert_plain(visible(text))
        assert_plain("".join(argv_lines([text])))
        assert_plain(
            "".join(call_lines(text, {text: {text: [text]}}, cut=Cut(limit=1 << 40, rest="")))
        )


@given(texts)
@settings(deadline=None)
def test_any_call_shows_only_ascii_and_plain_letters(text: str) -> None:
    assert_plain(visible(text))


def test_prose_shows_nothing_that_hides() -> None:
    for text in SMALL_AND_HEADS:
        assert_harmless(prose(text))
        assert_harmless(block(text).replace("\n", ""))


@given(texts)
@settings(max_examples=400, deadline=None)
def test_any_prose_shows_nothing_that_hides(text: str) -> None:
    assert_harmless(prose(text))


def test_no_character_at_all_is_shown_hidden() -> None:
    assert_plain("".join(map(visible, EVERY_CHARACTER)))
    assert_harmless(prose("x".join(EVERY_CHARACTER)))


@pytest.mark.parametrize(
    "words",
    [
        "größere Änderung",
        "Привет, мир",
        "Ελλάδα",
        "修复登录问题、再见",
        "使用Git提交",
        "テストを追加",
        "안녕하세요",
        "Việt Nam",
        "s/\\./x/".replace("\\", ""),
    ],
)
def test_a_call_keeps_readable_what_cannot_mislead(words: str) -> None:
    assert visible(words) == words


@pytest.mark.parametrize(
    "words",
    [
        "Déployer l’appli – maintenant ?",
        "✨ feat: ajouté “l’été” → prêt ✅",
        "«oui» – 100 € ≤ 2° ☀",
        "🚀 🐛 🎉 ❤ 👍",
        "部署到生产吗？好！",
        "デプロイしますか？",
        "배포할까요？",
        "هل ننشر الآن؟",
        "إصلاح الخطأ، ثم النشر",
        "שלום עולם",
        "क्या हम प्रोडक्शन पर तैनात करें",
        "नमस्ते दुनिया",
        "จะปล่อยขึ้นระบบจริงไหม",
        "สวัสดี น้ำ",
        "Развернуть на прод – сейчас?",
        "پروژه را در سرور اصلی مستقر کنیم؟",
        "آیا این کار برای همه است",
        "بعد از ۲۰ دقیقه",
        "انتظر ٢٠ دقيقة",
        "اجتماع في الساعة ١٢",
        "२५ मिनट में तैनात करें",
        "รออีก ๑๐ นาที",
        "👍🏽 🙏🏿 ✊🏻",
        "👨‍👩‍👧‍👦 👩‍💻 🧑🏽‍🚀 👩🏿‍🤝‍👨🏻",
    ],
)
def test_a_call_keeps_readable_what_people_write(words: str) -> None:
    assert visible(words) == words
    assert command_line(["git", "commit", "-m", words]) == f"git commit -m '{words}'"


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("–rf", "–"),
        ("a–b", "–"),
        ("– -rf", "–"),
        ("ls – x; rm y", "–"),
        ("echo “; rm -rf x; ”", "“”"),
        ("echo don’t; rm x; echo can’t", "’"),
        ("rm ‘x’", "‘’"),
        ("rm مرحبا 12", "مرحبا"),
        ("مرحبا/etc", "مرحبا"),
        ("xمر", "مر"),
        ("aไฟ", "ไฟ"),
        ("अा", "अा"),  # looks like आ
        ("कोे", "कोे"),
        ("เเก", "เ"),  # looks like แ
        ("นํา", "ํ"),  # looks like นำ
        ("ก่ี", "ก่ี"),  # looks like กี่
        ("🏽", "🏽"),
        ("💻🏽", "🏽"),
        ("❤️", "️"),
        ("👩💻", "💻"),  # looks like both joined, where nothing joins them
        ("👩🏽💻", "💻"),
        ("👩\u200d", "\u200d"),
        ("a\u200db", "\u200d"),
        ("💻\u200d👩", "\u200d"),
        ("👩\u200d\u200d💻", "\u200d"),
        ("👩\u200d💻\u200d", "\u200d"),
        ("پى", "ى"),  # looks like پی
        ("پ كتاب", "ك"),
        ("على ٢", "\u06cc"),
        ("كتاب ۲", "۲"),  # looks like ٢
        ("بعد از ٢", "٢"),
        ("انتظر ٥", "٥"),  # looks like o
        ("انتظر ١", "١"),
        ("rm ٢٣", "٢٣"),
        ("rm ५", "५"),
        ("करें ०", "०"),
        ("करें ५o", "५"),
        ("นาที ๐", "๐"),
        ("？", "？"),
        ("ls？", "？"),
        ("‹redacted›", "‹›"),
        ("…", "…"),
    ],
)
def test_a_call_spells_out_what_can_deceive(text: str, hidden: str) -> None:
    shown = visible(text)
    assert read(shown) == text
    assert not set(shown) & set(hidden)


def test_arabic_and_persian_letters_that_look_alike_never_stand_for_each_other() -> None:
    """Of two texts that differ only in such letters or digits, at most one is shown as it is."""
    alike = ["كک", "ىی", "يی", *(f"{chr(0x660 + each)}{chr(0x6F0 + each)}" for each in range(10))]
    frames = ["{} پ", "{} که", "{} از", "ال{}", "{} ة", "{}", "من {} ب", "از ال{}", "که ال{}"]
    for frame in frames:
        for letters in alike:
            shown: dict[str, str] = {}
            for one in letters:
                text = frame.format(f"ب{one}" if not one.isdigit() else f"{one}{one}")
                look = visible(text).translate({ord(each): letters[0] for each in letters})
                assert shown.setdefault(look, text) == text, (text, shown[look])


@pytest.mark.parametrize(
    "words",
    [
        "Привет, а вы с нами?",
        "مرحبا بالعالم",
        "שלום עולם",
        "नमस्ते दुनिया",
        "สวัสดี",
        "ок 👍 – “так”…",
        "👨‍👩‍👧‍👦 و 👩🏽‍💻 👍🏿",
        "پروژه را ۲۰ بار",
        "⚠️ This deletes it. ✔️ or ❤️?",
        "C:\\dir\\new",
        "cafe\u0301",
        "မြို့",
    ],
)
def test_prose_keeps_every_script_readable(words: str) -> None:
    assert prose(words) == words


# ── Look-alikes ───────────────────────────────────────────────────────────────────────────────────


def looks_like(one: str, other: str) -> bool:
    return all(
        a is not None and b is not None and (a == b or b in TWINS_OF.get(a, ""))
        for a, b in zip_longest(one, other)
    )


@given(st.text(st.sampled_from(TWINS + UNMISTAKABLE), min_size=1, max_size=8), st.data())
@settings(max_examples=2000, deadline=None)
def test_a_text_of_confusable_letters_never_looks_like_another(
    text: str, data: st.DataObject
) -> None:
    twin = "".join(data.draw(st.sampled_from(TWINS_OF.get(char, char))) for char in text)
    assert looks_like(visible(text), visible(twin)) is (text == twin)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("pаypal", "p\\u{430}ypal"),
        ("сору", "\\u{441}\\u{43e}\\u{440}\\u{443}"),
        ("сору мир", "\\u{441}\\u{43e}\\u{440}\\u{443} мир"),
        ("ж3", "\\u{436}3"),
        ("глава2", "глава2"),
        ("ｒｍ", "\\u{ff52}\\u{ff4d}"),
        ("–rf", "\\u{2013}rf"),
        ("ls" + " " * 40 + "#", "ls\\{40 spaces}#"),
        ("a\\n\n", "a\\\\n\\n"),
        ("\udc9b\x9b", "\\x9b\\u{9b}"),
    ],
)
def test_an_imitation_is_spelled_out(text: str, shown: str) -> None:
    assert visible(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("pаypal", "p\\u{430}ypal"),
        ("\\u{430}", "\\u{5c}u{430}"),
        ("a\tb\n", "a\\u{9}b\\u{a}"),
        ("a\ufe0f 😀\ufe0f", "a\\u{fe0f} 😀\\u{fe0f}"),
        ("⚠\ufe0f\ufe0f", "⚠\\u{fe0f}\\u{fe0f}"),
    ],
)
def test_prose_spells_out_words_of_mixed_alphabets(text: str, shown: str) -> None:
    assert prose(text) == shown


# ── On a terminal ─────────────────────────────────────────────────────────────────────────────────


def screen_after(rows: Sequence[str]) -> pyte.Screen:
    screen = pyte.Screen(max(1, *map(width, rows), 1) + 1, len(rows) + 1)
    pyte.Stream(screen).feed("".join(f"{row}\r\n" for row in rows))
    return screen


# pyte loses marks on wide letters, and the rest of a line at Thai vowels. That marks do no harm is
# shown above.
NOT_FOR_PYTE = re.compile(  # it prints nothing of what follows them
    f"[\u200d{''.join(char for char in EVERY_CHARACTER if char.isprintable() and wcwidth(char) == 0)}]"
)


def assert_prints_as_it_is(rows: Sequence[str]) -> None:
    """Every row is on the screen as rendered, and nothing else of the terminal has changed."""
    rows = [NOT_FOR_PYTE.sub("", row) for row in rows]
    screen, untouched = screen_after(rows), screen_after([""] * len(rows))
    display = [unicodedata.normalize("NFC", row).rstrip() for row in screen.display]
    assert display == [unicodedata.normalize("NFC", row).rstrip() for row in [*rows, ""]]
    assert (screen.cursor.x, screen.cursor.y, screen.cursor.hidden) == (0, len(rows), False)
    assert (screen.mode, screen.title, screen.icon_name) == (
        untouched.mode,
        untouched.title,
        untouched.icon_name,
    )
    assert {char._replace(data="") for row in screen.buffer.values() for char in row.values()} <= {
        screen.default_char._replace(data="")
    }


SURFACES: dict[str, Callable[[str], list[str]]] = {
    "visible": lambda text: [visible(text)],
    "argv_lines": lambda text: argv_lines(["x", text, text]),
    "call_lines": lambda text: call_lines(
        text, {text: text, "list": [text], "nested": {"a": [text]}}
    ),
    "command_line": lambda text: [command_line([text, text])],
    "prose": lambda text: [prose(text)],
    "block": lambda text: block(text).split("\n"),
    "agent_words": lambda text: agent_words(text, columns=40),
    "shortened": lambda text: [shortened(text, cut=Cut(limit=5, rest="adjourn show a1 --full"))],
}


@pytest.mark.parametrize("surface", SURFACES)
def test_a_terminal_prints_hostile_text_and_does_nothing_else(surface: str) -> None:
    for text in SMALL:
        assert_prints_as_it_is(SURFACES[surface](text[:300]))


def test_large_texts_are_harmless_on_a_terminal_too() -> None:
    for text in LARGE:
        assert_prints_as_it_is(
            [shortened(text, cut=CUT), *argv_lines([text], cut=CUT), *agent_words(text, cut=CUT)]
        )


# ── Nothing is cut in silence ─────────────────────────────────────────────────────────────────────


def test_what_is_cut_says_how_much_and_where_the_rest_is() -> None:
    assert shortened("A" * 2_000_000, cut=CUT) == (
        "A" * 200
        + f" … 1,999,800 more characters, sha256 {sha256(b'A' * 2_000_000).hexdigest()[:32]}. The rest: adjourn show a1 --full"
    )


def test_what_fits_is_not_cut() -> None:
    assert shortened("A" * 200, cut=CUT) == "A" * 200


@given(st.lists(texts, max_size=3), st.lists(texts, max_size=3))
@settings(deadline=None)
def test_two_commands_differ_even_when_cut(one: list[str], other: list[str]) -> None:
    cut = Cut(limit=3, rest="more")
    assert (argv_lines(one, cut=cut) == argv_lines(other, cut=cut)) is (one == other)


@given(calls, calls)
@settings(deadline=None)
def test_two_calls_differ_even_when_cut(
    one: tuple[str, dict[str, Json]], other: tuple[str, dict[str, Json]]
) -> None:
    cut = Cut(limit=2, rest="more")
    same = (one[0], exactly(one[1])) == (other[0], exactly(other[1]))
    assert (call_lines(*one, cut=cut) == call_lines(*other, cut=cut)) is same


def test_elements_that_are_left_out_are_counted() -> None:
    *_, last = argv_lines(["x"] * 100_000, cut=CUT)
    assert re.fullmatch(
        r"… 99,9\d\d more elements, sha256 [0-9a-f]{32}. The rest: adjourn show a1 --full", last
    )


def test_arguments_that_are_left_out_are_counted() -> None:
    *_, last = call_lines("t", {f"a{number}": number for number in range(1000)}, cut=CUT)
    assert re.fullmatch(
        r"  … 800 more arguments, sha256 [0-9a-f]{32}. The rest: adjourn show a1 --full", last
    )


def test_only_adjourn_writes_the_ellipsis_that_announces_a_cut() -> None:
    assert "…" not in "".join(call_lines("… 3 more", {"…": "… 3 more characters"}))


@pytest.mark.parametrize("text", TWO_MEGABYTES, ids=lambda text: ascii(text[:4]))
def test_two_megabytes_are_shortened_in_milliseconds(text: str) -> None:
    started = process_time()
    shortened(text, cut=CUT)
    argv_lines([text], cut=CUT)
    call_lines("t", {"a": text}, cut=CUT)
    agent_words(text, cut=CUT)
    assert process_time() - started < 0.2


@pytest.mark.parametrize("text", TWO_MEGABYTES, ids=lambda text: ascii(text[:4]))
@pytest.mark.parametrize("render", [visible, prose, block])
def test_two_megabytes_are_shown_whole_in_about_a_second(
    text: str, render: Callable[[str], str]
) -> None:
    started = process_time()
    render(text)
    assert process_time() - started < 2


# ── The agent's words ─────────────────────────────────────────────────────────────────────────────


@given(texts, st.integers(12, 100))
@settings(deadline=None)
def test_every_row_of_the_agents_words_is_marked_and_fits_the_screen(
    text: str, columns: int
) -> None:
    rows = agent_words(text, columns=columns)
    assert all(row.startswith(AGENT_MARK) and width(row) <= columns for row in rows)
    assert "".join(row.removeprefix(AGENT_MARK) for row in rows) == block(text).replace("\n", "")


def test_the_agents_words_break_between_words() -> None:
    assert agent_words("one two three", columns=17) == ["agent │ one two ", "agent │ three"]


def test_the_mark_keeps_a_line_of_arabic_left_to_right() -> None:
    assert unicodedata.bidirectional(AGENT_MARK[0]) == "L"


def test_a_block_keeps_lines_and_aligns_tabs() -> None:
    assert block("a\tb\n\nc\r\n") == "a       b\n\nc\\u{d}\n"


def test_the_end_of_long_words_is_announced_by_adjourn_not_by_the_agent() -> None:
    *words, last = agent_words("x" * 300, cut=CUT)
    assert all(row.startswith(AGENT_MARK) for row in words)
    assert last.startswith("… 100 more characters, sha256 ")


# ── Columns ───────────────────────────────────────────────────────────────────────────────────────


@given(texts.map(visible), st.integers(10, 60))
@settings(deadline=None)
def test_a_cell_is_exactly_as_wide_as_asked(text: str, columns: int) -> None:
    assert width(fit(text, columns=columns)) == columns


def test_a_cut_cell_counts_what_is_missing() -> None:
    assert fit("terraform apply -auto-approve", columns=16) == "terraform ap…+17"
    assert fit("汉字汉字汉字", columns=11) == "汉字汉字…+2"
    assert fit("汉字汉字汉字", columns=10) == "汉字汉…+3 "


def test_a_short_cell_is_filled_up() -> None:
    assert fit("汉", columns=4) == "汉  "


def test_width_agrees_with_the_terminal() -> None:
    for shown in (visible(text)[:200] for text in SMALL):
        if MARKED_SCRIPTS.search(shown):  # pyte stops at marks that Unicode gives no class
            assert sum(map(wcwidth, shown)) == width(shown)
            continue
        screen = pyte.Screen(1000, 1)
        pyte.Stream(screen).feed(shown.replace("\u200d", ""))
        assert screen.cursor.x == width(shown)  # a terminal that joins people needs less


# ── In a shell ────────────────────────────────────────────────────────────────────────────────────


def told_by_bash(argv: Sequence[str]) -> list[str]:
    """Let bash take the command line apart."""
    bash = needs("bash")
    script = command_line(["printf", "%s\\0", *argv])
    heard = subprocess.run([bash, "-s"], input=script.encode(), capture_output=True, check=True)
    assert heard.stderr == b""
    return heard.stdout.decode("utf-8", "surrogateescape").split("\0")[:-1]


def through_bytes(text: str) -> str:
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")


def test_bash_takes_hostile_words_for_what_they_are() -> None:
    assert told_by_bash(HOSTILE_WORDS) == HOSTILE_WORDS


def test_bash_takes_every_byte_for_what_it_is() -> None:
    every = [
        through_bytes(bytes([byte]).decode("utf-8", "surrogateescape")) for byte in range(1, 256)
    ]
    words = [*every, "".join(every)]
    assert told_by_bash(words) == words


@given(
    st.lists(
        st.text(
            st.characters(codec="utf-8", exclude_characters="\0")
            | st.sampled_from("\\'\"\n$`!\udc80 ~=")
        ),
        min_size=1,
    )
)
@settings(max_examples=60, deadline=None)
def test_bash_takes_any_words_for_what_they_are(argv: list[str]) -> None:
    assert told_by_bash(argv) == [through_bytes(word) for word in argv]


@pytest.mark.parametrize("program", ["A=1", "until", "if", "a b", "!", "{", "~", "[["])
def test_the_program_is_never_taken_for_an_assignment_or_a_keyword(program: str) -> None:
    heard = subprocess.run(
        [needs("bash"), "-c", command_line([program, "x"])],
        capture_output=True,
        text=True,
        check=False,
    )
    assert heard.returncode == 127
    assert f"{program}: command not found" in heard.stderr


def test_a_plain_command_is_written_plainly() -> None:
    assert (
        command_line(["adjourn", "resume", "a1", "--approve=tc_1"])
        == "adjourn resume a1 --approve=tc_1"
    )
    assert (
        command_line(["git", "commit", "-m", "it's größer", "a\nb"])
        == "git commit -m 'it'\\''s größer' $'a\\nb'"
    )
