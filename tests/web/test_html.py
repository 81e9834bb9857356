"""Whatever others write, the text of a page is the renderer's, and no element is made of it."""

import re

from adjourn.core.text.render import AGENT_MARK, WHOLE, Cut
from adjourn.views.block import Block, lay_out
from adjourn.web.html import to_html
from tests.hostile import HOSTILE_WORDS
from tests.views.test_hostile_text import all_views
from tests.web.served import elements_of, text_of

MARKUP = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "'\"><svg/onload=alert(1)>",
    "</pre></blockquote></p><h1>Approved</h1>",
    "&lt;b&gt; &amp; &#x3c;",
    "{{ 7 * 7 }} {% include 'x' %}",
    "<!-- --> <![CDATA[ ]]>",
]
OURS = {"p", "span", "dl", "div", "dt", "dd", "pre", "blockquote"}
TABLES = {"table", "thead", "tbody", "tr", "th", "td"}
_UNBROKEN = 1_000_000


def words(text: str) -> str:
    """Return a text without the blanks and marks by which surfaces lay it out."""
    return re.sub(r"\s+", "", text.replace(AGENT_MARK, ""))


def test_the_document_holds_what_the_renderer_shows() -> None:
    """Some 500 strings, in every view of a task, whole and cut: the text is the same."""
    cuts = [WHOLE, Cut(limit=40, rest="open it")]
    texts = [
        text
        for text in [*MARKUP, *HOSTILE_WORDS]
        if len(text) <= 5_000 and not any("\ud800" <= char <= "\udfff" for char in text)
    ]
    for number, text in enumerate(texts):
        for blocks in all_views(text, cuts[number % 2]):
            html = str(to_html(blocks))
            shown: list[Block] = list(blocks)
            expected = "\n".join(row.text for row in lay_out(shown, _UNBROKEN))
            assert words(text_of(html)) == words(expected), ascii(text)
            assert set(elements_of(html)) <= OURS | TABLES, ascii(text)
            # Between people a joiner is seen: it makes one picture of them
            seen = html.replace("\n", "").replace("👩\u200d💻", "")
            assert seen.isprintable(), ascii(text)
