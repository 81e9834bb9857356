"""A pattern stands for words; what means nothing is refused with the place where it does not."""

from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjourn.core.policy.judgement import Action
from adjourn.core.policy.pattern import REST, BadPattern, quoted, read_pattern
from adjourn.core.policy.rule import Index, Rule


@pytest.mark.parametrize(
    ("pattern", "fitting", "others"),
    [
        ("ls", ["ls"], ["", "l", "lss", "LS", "./ls"]),
        ("", [""], ["a"]),
        ("*", ["", "a", "a/b", "a\nb", "-x"], []),
        ("a*", ["a", "ab"], ["ba", ""]),
        ("*.txt", [".txt", "a.txt", "a/b.txt"], ["a.txt2", "txt"]),
        ("a*b*c", ["abc", "aXbXc", "abbcc"], ["acb", "ab"]),
        ("?", ["a", "é", "\n", "😀"], ["", "ab"]),
        ("[a-c]x", ["ax", "bx"], ["dx", "x"]),
        ("[!a-c]x", ["dx", "!x"], ["ax", "x"]),
        ("[-a]", ["-", "a"], ["b"]),
        ("[a-]", ["-", "a"], ["b"]),
        (r"[\]\\]", ["]", "\\"], ["["]),
        (r"\*\?\[\\", ["*?[\\"], ["a?[\\"]),
        ("a]", ["a]"], ["a"]),
        ("[!!]", ["a"], ["!"]),
        ("[^a]", ["^", "a"], ["b"]),
    ],
)
def test_a_pattern_stands_for_exactly_these_words(
    pattern: str, fitting: list[str], others: list[str]
) -> None:
    assert [word for word in fitting if not read_pattern(pattern).matches(word)] == []
    assert [word for word in others if read_pattern(pattern).matches(word)] == []


@pytest.mark.parametrize(
    ("pattern", "offset"),
    [
        ("a[", 1),
        ("[", 0),
        ("[]", 0),
        ("[!]", 0),
        ("ab[c-", 2),
        ("[z-a]", 1),
        ("a\\", 1),
        ("[a\\", 2),
        ("**", 0),
        ("a**", 1),
        ("x**y", 1),
    ],
)
def test_a_pattern_that_means_nothing_is_refused_at_its_place(pattern: str, offset: int) -> None:
    with pytest.raises(BadPattern) as refused:
        read_pattern(pattern)
    assert refused.value.offset == offset


@given(st.text(), st.text())
def test_a_quoted_word_stands_for_itself_and_no_other(word: str, other: str) -> None:
    pattern = read_pattern(quoted(word))
    assert pattern.is_literal
    assert pattern.matches(word)
    assert pattern.matches(other) == (word == other)


@given(
    st.text("ab*?x", max_size=8).filter(lambda text: "**" not in text), st.text("abx", max_size=8)
)
def test_stars_and_question_marks_mean_what_they_mean_elsewhere(pattern: str, word: str) -> None:
    assert read_pattern(pattern).matches(word) == fnmatchcase(word, pattern)


def test_no_pattern_takes_long_over_any_word() -> None:
    # Backtracking would outlast any timeout.
    for pattern in ("*a" * 30 + "b", "?*" * 30 + "b", "*[ab]" * 30 + "c"):
        assert not read_pattern(pattern).matches("a" * 5_000)


# --- the index ------------------------------------------------------------------------------------

PATTERNS = st.one_of(
    st.text("ab", max_size=2),
    st.text("ab*?-.", max_size=4).filter(lambda text: "**" not in text),
    st.sampled_from(["*", "a*", "*b", "*a*", "?", "[ab]", "-*", "..", "../*"]),
)
WORDS = st.one_of(st.text("ab", max_size=3), st.sampled_from(["-a", "..", "../a", "a-b", "b.a"]))
ARGV = st.builds(
    lambda words, rest: (*words, REST) if rest else tuple(words),
    st.lists(PATTERNS, max_size=3),
    st.booleans(),
).filter(bool)
RULES = st.one_of(
    st.builds(lambda argv: Rule(argv=argv, action=Action.AUTO), ARGV),
    st.builds(lambda tool, argv: Rule(tool=tool, argv=argv, action=Action.AUTO), PATTERNS, ARGV),
    st.builds(lambda tool: Rule(tool=tool, action=Action.AUTO), PATTERNS),
    st.builds(
        lambda table: Rule(arguments=table, action=Action.AUTO),
        st.dictionaries(st.sampled_from("pq"), PATTERNS, min_size=1),
    ),
)


def fits(rule: Rule, tool: str, words: list[str], *, strictly: bool) -> bool:
    """Say whether a rule matches, the slow and obvious way."""
    patterns = list(rule.argv or ())
    is_open = patterns[-1:] == [REST]
    patterns = patterns[:-1] if is_open else patterns
    enough = len(words) >= len(patterns) if is_open else len(words) == len(patterns)
    pairs = zip(patterns, words, strict=False)
    return (
        enough
        and read_pattern(rule.tool).matches(tool)
        and all(read_pattern(a).matches(b, strictly=strictly) for a, b in pairs)
    )


@given(st.lists(RULES, max_size=12), WORDS, st.lists(WORDS, min_size=1, max_size=4), st.booleans())
def test_the_index_finds_exactly_the_rules_that_match(
    rules: list[Rule],
    tool: str,
    words: list[str],
    strictly: bool,  # noqa: FBT001 -- a case of the test
) -> None:
    found = list(Index(rules, strictly=strictly).of_words(tool, words))
    expected = [rule for rule in rules if rule.argv and fits(rule, tool, words, strictly=strictly)]
    assert sorted(map(id, found)) == sorted(map(id, expected))


@given(
    st.lists(RULES, max_size=12),
    WORDS,
    st.dictionaries(st.sampled_from("pqr"), WORDS),
    st.booleans(),
)
def test_the_index_finds_exactly_the_rules_for_arguments(
    rules: list[Rule],
    tool: str,
    arguments: dict[str, str],
    strictly: bool,  # noqa: FBT001 -- hypothesis hands it in
) -> None:
    found = list(Index(rules, strictly=strictly).of_call(tool, arguments, holds_commands=False))
    expected = [
        rule for rule in rules if rule.argv is None and read_pattern(rule.tool).matches(tool)
    ]
    expected = [
        rule
        for rule in expected
        if all(
            key in arguments and read_pattern(pattern).matches(arguments[key], strictly=strictly)
            for key, pattern in (rule.arguments or {}).items()
        )
    ]
    assert sorted(map(id, found)) == sorted(map(id, expected))
