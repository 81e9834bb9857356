"""Secrets are taken out of copies, and nothing else is."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjourn.core.call import Command, arguments_of, command_body, command_of, portable
from adjourn.core.errors import Misuse
from adjourn.core.redact import Redactor, is_tame, mark, plainly
from adjourn.core.scene import Scene
from adjourn.core.states import AskState, TaskState
from adjourn.testing.values import a_call, a_run, a_spec, a_task, an_approval, settled
from tests.secrets import OWN_PATTERN, Canary, canaries

CANARIES = canaries()


@pytest.mark.parametrize("canary", CANARIES, ids=lambda canary: canary.name)
def test_a_secret_is_taken_out_of_words_and_of_what_holds_them(canary: Canary) -> None:
    redactor = Redactor()
    assert canary.core not in str(redactor.words(canary.words))
    assert canary.core not in str(redactor.value({"argv": ["tool", *canary.words]}))
    assert "‹redacted" in str(redactor.words(canary.words))  # noqa: RUF001 -- our mark


@pytest.mark.parametrize("canary", CANARIES, ids=lambda canary: canary.name)
def test_nothing_of_a_scene_tells_a_secret(canary: Canary) -> None:
    words = ("tool", *canary.words)
    body = command_body(Command(argv=words, cwd="/srv", env={"AUTO_APPROVAL": canary.words[-1]}))
    text = (
        canary.words[-1]
        if len(canary.words) == 1 or canary.words[0] in {"-c", "-H"}
        else " ".join(canary.words)
    )
    if canary.words[0] == "-u":
        text = ""  # in a text, a colon between two words means nothing
    ask = settled(an_approval(manifest=text, prompt=text), AskState.APPROVED, reply=text)
    task = a_task(spec=a_spec(argv=words), state=TaskState.WAITING, message=text, runs=1)
    scene = Scene(
        task=task, run=a_run(), asks=(ask,), calls={1: a_call(body=body)}, originals={1: body}
    )
    clean = Redactor().scene(scene)
    env = command_of(clean.calls[1].body).env.pop("AUTO_APPROVAL")
    shown = str(msgspec.to_builtins(clean)) + str(arguments_of(clean.calls[1].body)["argv"])
    if len(canary.words) == 1:
        assert canary.core not in env
        assert canary.core not in shown
    assert canary.core not in str(arguments_of(clean.calls[1].body)["argv"])
    assert clean.calls[1].digest == scene.calls[1].digest


@pytest.mark.parametrize(
    "text",
    [
        "deploy the token service",
        "token: approved",
        "max_tokens=4096",
        "tokens_burned=123456",
        "secrets: nothing to see",
        "the password is on the wall",
        "keyboard=qwertyuiop",
        "https://example.org/a:b@c",
        "sk-short",
        "commit 6f1ed002ab5595859014ebf0951522d9e4dbd9f2",
        "sha256:f5adb8bf0100ed0f8c7782ca5f92814e9229525a4b4e0d401cf3bea09ac960a6",
        "adjourn -c abcdefghijklmnopqrstuvwxyz --answer 'password=your answer'",
        "PASSWORD=$PASSWORD",
        "--token=${TOKEN}",
    ],
)
def test_plain_words_stay_as_they_are(text: str) -> None:
    assert Redactor().text(text) == text


def test_the_mark_says_how_many_bytes_are_missing() -> None:
    assert Redactor().words(["--password", "gehéim"]) == ["--password", mark("gehéim")]
    assert mark("gehéim") == "‹redacted 7 bytes›"  # noqa: RUF001 -- our mark


def test_a_word_that_is_not_utf8_is_looked_at_too() -> None:
    word = "--password=geheim\udcff"
    cleaned = Redactor().value(
        [
            msgspec.to_builtins(portable("x\udcff")),
            msgspec.to_builtins(portable(f"DB_PASSWORD={word}")),
        ]
    )
    assert cleaned[0] == msgspec.to_builtins(portable("x\udcff"))
    assert "geheim" not in str(cleaned[1])


@given(st.text() | st.text(alphabet="pasword=:-'\"token {}[],\n"))
def test_to_redact_twice_changes_nothing_more(text: str) -> None:
    once = Redactor().text(text)
    assert Redactor().text(once) == once


def test_a_rendered_mark_reads_as_a_mark() -> None:
    assert plainly('0  "\\u{2039}redacted 7 bytes\\u{203a}"') == '0  "‹redacted 7 bytes›"'  # noqa: RUF001 -- our mark


# --- the user's own patterns ----------------------------------------------------------------------


def test_the_users_own_patterns_count_too() -> None:
    redactor = Redactor([OWN_PATTERN, "ticket ([0-9]+)"])
    assert redactor.text("see acme-0123456789abcdef") == f"see {mark('acme-0123456789abcdef')}"
    assert redactor.text("ticket 4711") == f"ticket {mark('4711')}"


@pytest.mark.parametrize("before", [0, 950, 985, 999, 1000, 1001, 5_000])
def test_a_long_line_hides_no_secret(before: int) -> None:
    text = "x" * before + " acme-0123456789abcdef0123 " + "y" * 3_000
    assert "0123456789" not in Redactor([OWN_PATTERN]).text(text)


@pytest.mark.parametrize(
    "pattern",
    [
        "(",
        "(a+)+",
        "(a|b)*",
        "(a*)*b",
        "((a+)b)*",
        r"(a)\1",
        "a*b*c*d*",
        "(?:x{2,9}){3,}",
        "x" * 301,
        "(?P<n>a)(?P=n)",
        "[",
        "*",
    ],
)
def test_a_pattern_that_is_wrong_or_could_take_for_ever_is_refused(pattern: str) -> None:
    assert len(pattern) > 300 or not is_tame(pattern)
    with pytest.raises(Misuse, match="cannot be used"):
        Redactor([pattern])


@pytest.mark.parametrize(
    "pattern",
    [
        "acme-[a-z]+",
        r"\bkey=\S+",
        "(?:live|test)_[0-9]{8,40}",
        "(?i)geheim",
        r"a\*b\+c\(d\)e",
        "[*+]{1,3}x",
    ],
)
def test_a_plain_pattern_is_taken(pattern: str) -> None:
    assert is_tame(pattern)
    assert Redactor([pattern]).text("b" * 20_000) == "b" * 20_000
