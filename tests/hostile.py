"""Texts that try to be seen as something else.

What an agent, a repository or a web page may put into a call.
"""
# ruff: noqa: RUF001 -- to mislead is what these characters are here for

import re

# Between people, where it makes one picture of them
JOINER = re.compile("(?<=[👦-👩👴-👶🧑-🧓🏻-🏿🌾-🫿])\u200d(?=[🌾-🫿])")
ESC, BEL, ST, CSI8, OSC8BIT, DCS8, ST8 = "\x1b", "\x07", "\x1b\\", "\x9b", "\x9d", "\x90", "\x9c"


def _around(hidden: list[str]) -> list[str]:
    """Put each between harmless words, where it would do its harm."""
    return [f"echo safe{text}; rm -rf /" for text in hidden]


def _chars(*spans: int | tuple[int, int]) -> list[str]:
    pairs = [span if isinstance(span, tuple) else (span, span) for span in spans]
    return [chr(code) for first, last in pairs for code in range(first, last + 1)]


CONTROLS = _chars((0x00, 0x1F), (0x7F, 0x9F))
BIDI = _chars(0x061C, 0x200E, 0x200F, (0x202A, 0x202E), (0x2066, 0x2069))
ZERO_WIDTH = _chars(
    0x00AD,
    0x034F,
    (0x200B, 0x200D),
    (0x2060, 0x2065),
    (0x206A, 0x206F),
    0xFEFF,
    0x180E,
    0x17B4,
    0x17B5,
)
BLANKS = _chars(
    *(
        0x00A0,
        0x115F,
        0x1160,
        0x1680,
        (0x2000, 0x200A),
        0x2028,
        0x2029,
        0x202F,
        0x205F,
        0x2800,
        0x3000,
        0x3164,
        0xFFA0,
        0x1D159,
    )
)
SELECTORS = _chars((0x180B, 0x180D), 0x180F, (0xFE00, 0xFE0F), 0xE0100, 0xE01EF)
TAGS = _chars(0xE0001, 0xE0020, 0xE0041, 0xE007F)
NO_CHARACTERS = _chars(
    0xFFF9,
    0xFFFA,
    0xFFFB,
    0xFFFE,
    0xFFFF,
    0x1FFFE,
    0x10FFFF,
    0x0378,
    0xE000,
    0xF8FF,
    0xF0000,
    0x10FFFD,
)
SURROGATES = _chars(0xD800, 0xDBFF, 0xDC00, 0xDC7F, (0xDC80, 0xDC84), 0xDC9B, 0xDCFF, 0xDFFF)
OVERLAYS = _chars((0x0334, 0x0338), 0x0488, 0x20D2, 0x20DD, 0x20E0, 0x20E3, 0x20E5)

CSI_SEQUENCES = [
    f"{start}{body}"
    for start in (f"{ESC}[", CSI8)
    for body in (
        *(
            "2J",
            "3J",
            "1J",
            "K",
            "1K",
            "2K",
            "H",
            "1;1H",
            "A",
            "5A",
            "B",
            "C",
            "D",
            "80D",
            "E",
            "F",
            "G",
            "1G",
            "d",
            "S",
            "T",
            "L",
            "M",
        ),
        *(
            "P",
            "@",
            "X",
            "0m",
            "8m",
            "30;40m",
            "38;5;0m",
            "38;2;0;0;0m",
            "7m",
            "?25l",
            "?1049h",
            "?47h",
            "?7l",
            "4h",
            "20h",
            "6n",
        ),
        *(
            "c",
            ">c",
            "5n",
            "s",
            "u",
            "r",
            "2;3r",
            "!p",
            "?1000h",
            "?2004h",
            "21t",
            "14t",
            "8;1;1t",
            "1;31",
            "999999999C",
            "b",
            "9b",
        ),
    )
]
OSC_SEQUENCES = [
    f"{start}{body}{end}"
    for start, end in ((f"{ESC}]", BEL), (f"{ESC}]", ST), (OSC8BIT, ST8))
    for body in (
        *(
            "0;approved",
            "1;icon",
            "2;title",
            "4;1;?",
            "7;file:///etc",
            "8;;https://evil.example",
            "8;;",
            "9;notify",
            "10;?",
        ),
        *(
            "11;#000000",
            "52;c;cm0gLXJmIC8=",
            "52;c;?",
            "104",
            "133;A",
            "777;notify;a;b",
            "1337;File=inline=1:AAAA",
        ),
    )
]
OTHER_SEQUENCES = [
    f'{ESC}P$q"p{ST}',
    f"{ESC}P+q544e{ST}",
    f"{DCS8}1;1|41/42{ST8}",
    f"{ESC}Pq#0;2;0;0;0{ST}",
    f"{ESC}_Ga=T,f=24;AAAA{ST}",
    f"{ESC}^private{ST}",
    f"{ESC}Xstring{ST}",
    f"{ESC}]unterminated",
    f"{ESC}[",
    *(f"{ESC}{final}" for final in "cDEHMNOZ78=>nolk6V"),
    f"{ESC}(0",
    f"{ESC})B",
    f"{ESC}#8",
    f"{ESC}#3",
    f"{ESC}%G",
    f"{ESC} F",
    "\x0e\x0f",
]
OVERWRITES = [
    "rm -rf /\rls -la  ",
    "rm -rf /\x1b[2K\rls",
    "evil" + "\b" * 4 + "good",
    "evil\x7f\x7f\x7f\x7fgood",
    "a\nb",
    "a\r\nb",
    "a\vb",
    "a\fb",
    "a\x85b",
    "a\u2028b",
    "a\u2029b",
    "\n",
    "\n\n\n\n\n\n",
    "ok\n[approved by alice]",
    "\tx",
    "x\t",
    "x" + "\n" * 200 + "rm -rf /",
    "ls" + " " * 200 + "; rm -rf /",
    "ls" + " " * 5000,
    "a\x00b",
    "\x00",
]
DIRECTIONS = [
    "\u202efdp.exe",
    "user\u2066 \u2069; rm\u2066",
    "\u202dabc\u202c",
    "/* \u202e } \u2066if (admin)\u2069 \u2066 begin */",
    "שלום",
    "rm שלום 1 2 3",
    "مرحبا",
    "٣ + ٤",
    "a/א/b",
    "\u200fabc",
    "\u061c1-2",
    "߀߁߂",
]
TWINS = [
    "pаypal.com",
    "раураl.com",
    "аррӏе.com",
    "сору",
    "ѕсоре",
    "gооgle",
    "ΑΒΕ",
    "Ηello",
    "ｒｍ －ｒｆ ／",
    "𝐫𝐦 -𝐫𝐟 /",
    "ⅰnstall",
    "ﬁle",
    "rm –rf",
    "rm ‐rf",
    "rm −rf",
    "a∕b",
    "a⁄b",
    "a；b",
    "a\u037eb",
    "‘quoted’",
    "“quoted”",
    "ʼx",
    "aʹb",
    "ǃls",
    "ꓐꓰ",
    "Ꭺᗪ",
    "օne",
    "ıf",
    "ſudo",
    "\u212a",
    "\u212b",
    "\u2126",
    "ℓs",
    "l\u0131s",
    "ɡit",
    "ɑpt",
    "ᴀᴘᴛ",
    "﹣x",
    "ニニ",
    "一rf",
    "丨",
    "〇",
    "ヘへ",
    "ロ口",
    "ㅡㅣ",
    "꞉",
    "։",
    "․",
    "…",
    "⧸",
    "\\u{202e}",
    "\\n",
    "\\x80",
    "\\{40 spaces}",
    "\\",
    "\\\\",
    '"',
    '\\"',
    "'",
    "$'x'",
    "`id`",
    "$(id)",
    "%s%n",
    "{0}",
    "<script>alert(1)</script>",
    "&#x202e;",
    "[red]x[/red]",
    "*bold*",
    "agent │ x",
]
MARKS = [
    "e\u0301",
    "\u0301e",
    "a" + "\u0300" * 200,
    "Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢L̠ͨͧͩ͘G̴̻͈͍͔̹̑͗̎̅͛́Ǫ̵̹̻̝̳͂̌̌͘",
    "r\u0336m\u0336",
    " \u20dd",
    "\u0338=",
    "x\u0489",
    "กิ่กิ้ก้",
    "ก็็็็็็็็็็็็็็็็็็็็",
    "नमस्ते",
    "a\u1ab0\u1ab1",
    "1\ufe0f\u20e3",
    "\u1100\u1161\u11a8",
    "か\u3099",
    "❤\ufe0f",
    "👩\u200d💻",
    "🇩🇪",
    "🏴\U000e0067\U000e0062\U000e007f",
    "क\u200d\u094d",
]
LARGE = ["A" * 2_000_000, "\x1b[31m" * 400_000, "мир с" * 400_000, "a\n" * 1_000_000]

HOSTILE = [
    *_around(
        CONTROLS
        + BIDI
        + ZERO_WIDTH
        + BLANKS
        + SELECTORS
        + TAGS
        + NO_CHARACTERS
        + SURROGATES
        + OVERLAYS
    ),
    *_around(CSI_SEQUENCES + OSC_SEQUENCES + OTHER_SEQUENCES),
    *(OVERWRITES + DIRECTIONS + TWINS + MARKS),
    *(
        "",
        " ",
        "  ",
        " x",
        "x ",
        "-",
        "--help",
        "-rf",
        "../../x",
        "~",
        "#",
        "!!",
        "*",
        "a=b",
        "A=1",
    ),
    *LARGE,
]


def _fits(text: str) -> bool:
    """Tell whether the kernel takes it as one element of an argv."""
    escaped = all(not "\ud800" <= char <= "\udfff" or "\udc80" <= char <= "\udcff" for char in text)
    return escaped and "\0" not in text and len(text) < 30_000


HOSTILE_WORDS = [text for text in HOSTILE if _fits(text)]
