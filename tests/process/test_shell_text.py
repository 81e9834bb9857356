"""What is judged auto in a shell text is exactly what real shells run.

Probe programs write down how they are called.
"""

import itertools
import subprocess
from collections.abc import Iterator
from pathlib import Path
from shlex import split

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from adjourn.core.policy.commands import all_steps, steps_of
from adjourn.core.policy.judge import judge
from adjourn.core.policy.judgement import Action, Effect
from adjourn.core.policy.policy import Policy
from tests.needs import needs
from tests.unit.policies import NOW, WORKSPACE, judged, policy, seen

SHELLS = ("bash", "dash")
PROBES = ("a", "b", "z", "echo", "true", "false")
BUILTIN = frozenset({"echo", "true", "false"})  # the shells answer these themselves
PROBE = '#!/bin/sh\nprintf \'%s\\0\' "${0##*/}" "$@" >"$SEEN/$$"\nexit "$STATUS"\n'
RULES = """
[[rule]]
args = ["a", "**"]
action = "auto"
[[rule]]
args = ["b", "x*"]
action = "auto"
[[rule]]
args = ["echo", "**"]
action = "auto"
[[rule]]
args = ["timeout", "5", "**"]
action = "auto"
[[rule]]
args = ["env", "**"]
action = "auto"
[[rule]]
args = ["xargs", "**"]
action = "auto"
"""

# Pieces that texts are made of: all that could make a text mean something else than it seems to.
PIECES = (
    *(
        "a",
        "b",
        "z",
        "x",
        "xy",
        "echo",
        "true",
        "sh -c",
        "bash -c",
        "timeout 5",
        "env",
        "xargs",
        "nohup",
        "nice",
    ),
    *(
        "|",
        "||",
        "&&",
        ";",
        "&",
        "|&",
        ";;",
        "\n",
        "\r",
        "\t",
        " ",
        "  ",
        "\v",
        "\f",
        "\x00",
        "\x1b",
    ),
    *(
        "'",
        '"',
        "\\",
        "$",
        "`",
        "(",
        ")",
        "{",
        "}",
        "<",
        ">",
        "#",
        "!",
        "~",
        "*",
        "?",
        "[",
        "]",
        "=",
        "%",
        "^",
        ",",
        "-",
        "--",
    ),
    *(
        "$(z)",
        "`z`",
        "${IFS}",
        "$'z'",
        "a=z",
        "=a",
        "{z,}",
        "<(z)",
        ">f",
        "2>&1",
        "~/a",
        "./a",
        "/a",
        "\\z",
        "a\\",
        "z #",
        "''",
        '""',
    ),
    *(
        "if",
        "then",
        "fi",
        "do",
        "time",
        "eval",
        "exec",
        "command",
        "builtin",
        "alias",
        "export",
        "cd",
        ".",
        ":",
        "set",
        "printf -v",
    ),
    *("\u00a0", "\u2003", "é", "\u202e", "\udc80", "😀", "PATH=.", "-c", "+x", "%1"),
)
WORDS = st.one_of(
    st.sampled_from(["x", "xy", "-l", "a", "''", '""', "a=b", "1,2", "./f"]),
    st.text("xy $`;|&'", max_size=5).map(
        lambda text: (
            '"' + text.replace("$", "").replace("`", "") + '"' if "'" in text else f"'{text}'"
        )
    ),
)
COMMANDS = st.builds(
    lambda program, words: " ".join([program, *words]),
    st.sampled_from(["a", "b"]),
    st.lists(WORDS, max_size=3),
)
LISTS = st.builds(
    lambda first, more: (
        first + "".join(f"{gap}{operator}{gap}{each}" for gap, operator, each in more)
    ),
    COMMANDS,
    st.lists(
        st.tuples(
            st.sampled_from(["", " ", "\t "]), st.sampled_from(["|", "||", "&&", ";"]), COMMANDS
        ),
        max_size=4,
    ),
)
STARTS = st.sampled_from(
    [
        "",
        "timeout 5 ",
        "env ",
        "nohup ",
        "nice ",
        "xargs ",
        "sh -c ",
        "bash -c ",
        "z ",
        "true && ",
        "echo; ",
    ]
)
WOUNDS = st.lists(st.tuples(st.integers(0, 40), st.sampled_from(PIECES)), max_size=2)


def wounded(start: str, text: str, wounds: list[tuple[int, str]]) -> str:
    """Return a text with pieces put in anywhere.

    Most of it still makes sense, and some of it another one.
    """
    for at, piece in wounds:
        text = text[:at] + piece + text[at:]
    return start + text


TEXTS = st.builds(wounded, STARTS, LISTS, WOUNDS)
SHELL_RULES = policy(RULES)
ALL_RULES = policy('[[rule]]\naction = "auto"')


@pytest.fixture(scope="module")
def probes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("probes")
    for name in PROBES:
        (place / name).write_text(PROBE)
        (place / name).chmod(0o700)
    for name in ("sh", "bash", "timeout", "env", "xargs", "nohup", "nice"):
        (place / name).symlink_to(needs(name))
    return place


class Stage:
    """A directory in which nothing but probes can be run."""

    def __init__(self, probes: Path, place: Path) -> None:
        self._probes = probes
        self._place = place
        self._numbers = itertools.count()

    def run(self, shell: str, text: str) -> set[tuple[str, ...]]:
        """Return how probes are called by a text, be it that all of them succeed or all of them fail."""
        return {words for status in (0, 1) for words in self._run_with(shell, text, status)}

    def _run_with(self, shell: str, text: str, status: int) -> Iterator[tuple[str, ...]]:
        seen_here = self._place / str(next(self._numbers))
        seen_here.mkdir()
        env = {
            "PATH": str(self._probes),
            "SEEN": str(seen_here),
            "STATUS": str(status),
            "LC_ALL": "C.UTF-8",
        }
        subprocess.run(
            [needs(shell), "-c", text],
            cwd=self._place,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=20,
            check=False,
        )
        for note in seen_here.iterdir():
            *words, _ = note.read_bytes().decode(errors="surrogateescape").split("\0")
            yield tuple(words)
            note.unlink()
        seen_here.rmdir()


@pytest.fixture
def stage(probes: Path, tmp_path: Path) -> Stage:
    return Stage(probes, tmp_path)


def is_auto(rules: Policy, text: str) -> bool:
    found = judge(
        rules,
        "command",
        {"argv": ["sh", "-c", text]},
        surroundings=seen(),
        workspace=WORKSPACE,
        now=NOW,
    )
    return found.action is Action.AUTO


def parts(text: str) -> set[tuple[str, ...]]:
    """Return the commands that the text is judged by, but for shells, which are not probes."""
    step = steps_of("command", {"argv": ["sh", "-c", text]})
    assert step
    return {each.words for each in all_steps(step) if not each.is_shell}


def is_allowed(words: tuple[str, ...]) -> bool:
    return words[0] in {"a", "echo"} or (
        words[0] == "b" and len(words) == 2 and words[1].startswith("x")
    )


def examples(sweep: str) -> int:
    return 3_000 if sweep == "full" else 120


QUIETLY = settings(
    deadline=None,
    database=None,
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.filter_too_much,
        HealthCheck.too_slow,
    ],
)


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("shell", SHELLS)
def test_of_lists_of_plain_commands_shells_run_exactly_the_parts_that_are_judged(
    shell: str, stage: Stage, sweep: str
) -> None:
    @settings(QUIETLY, max_examples=examples(sweep))
    @given(LISTS)
    def look(text: str) -> None:
        assert is_auto(ALL_RULES, text)
        assert stage.run(shell, text) == parts(text)

    look()


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("shell", SHELLS)
def test_a_text_that_is_judged_auto_runs_nothing_that_no_auto_rule_matches(
    shell: str, stage: Stage, sweep: str
) -> None:
    @settings(QUIETLY, max_examples=examples(sweep))
    @given(TEXTS)
    def look(text: str) -> None:
        assume(is_auto(SHELL_RULES, text))
        ran = stage.run(shell, text)
        assert [words for words in ran if not is_allowed(words)] == []

    look()


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("shell", SHELLS)
def test_whatever_the_pieces_an_understood_text_runs_only_what_was_understood(
    shell: str, stage: Stage, sweep: str
) -> None:
    @settings(QUIETLY, max_examples=examples(sweep))
    @given(TEXTS)
    def look(text: str) -> None:
        assume(is_auto(ALL_RULES, text))
        ran = stage.run(shell, text)
        assert ran <= parts(text)
        if BUILTIN.isdisjoint(words[0] for words in parts(text)):
            assert ran == {words for words in parts(text) if words[0] in PROBES}

    look()


DOUBTFUL = (
    *(
        "a $x",
        "a `z`",
        "a > f",
        "a < f",
        "a & z",
        "(a)",
        "{ a; }",
        "a *",
        "a ?",
        "a [z]",
        "a ~",
        "a # z",
        "a\nz",
        "! a",
        "a \\z",
    ),
    *(
        "if a; then z; fi",
        "time a",
        'a "$x"',
        'a "`z`"',
        'a "\\"',
        "X=1 a",
        "a=z",
        "=z",
        "a =z",
        "a {z,y}",
        "a ^ z",
        "%1",
        "-",
        "+a",
    ),
    *(
        "cd /; a",
        "eval a",
        "exec z",
        "export PATH=.; a",
        ". ./a",
        "source a",
        "alias a=z; a",
        "printf -v PATH x; a",
        "read PATH; a",
    ),
    *(
        "hash -p z a; a",
        "trap z EXIT",
        "command z",
        "builtin a",
        "test -v 'x[$(z)]'",
        "unset PATH; a",
        "set -k; a",
        "enable -n a",
    ),
    *(
        "a |& z",
        "a ;; z",
        "a;",
        ";a",
        "a |",
        "| a",
        "a | | a",
        "a || ",
        "a 'x",
        'a "x',
        "a\u00a0z",
        "a\rz",
        "a\tb\x0bz",
        "a\x00",
    ),
    *(
        "",
        " ",
        "a 'x\ny'",
        "a \udc80",
        "sh -c 'a > f'",
        "bash -lc a",
        "sh -c a z",
        "sh -ec a",
        "fish -c a",
    ),
)


@pytest.mark.parametrize("text", DOUBTFUL)
def test_what_is_not_understood_for_certain_needs_a_person(text: str) -> None:
    assert not is_auto(ALL_RULES, text)


@pytest.mark.parametrize(
    "text", ["a " * 100_000, "a;" * 2_000 + "a", "sh -c " * 20 + "a", "nohup " * 20 + "a"]
)
def test_too_much_to_be_understood_needs_a_person(text: str) -> None:
    assert not is_auto(ALL_RULES, text)


@pytest.mark.parametrize("text", DOUBTFUL)
def test_what_is_forbidden_is_forbidden_behind_what_is_not_understood(text: str) -> None:
    rules = policy('[[rule]]\naction = "auto"\n[[rule]]\nargs = ["rm", "**"]\naction = "never"')
    for hidden in (
        f"rm -r /; {text}",
        f"{text}\nrm -r /",
        f"x $(rm -r /) {text}",
        f'x "`rm -r /`" {text}',
    ):
        found = judge(
            rules,
            "command",
            {"argv": ["sh", "-c", hidden]},
            surroundings=seen(),
            workspace=WORKSPACE,
            now=NOW,
        )
        assert found.action is Action.NEVER


# --- wrappers -------------------------------------------------------------------------------------

WRAPPED = (
    *(
        "sudo z",
        "sudo -u me z",
        "env z",
        "env -i z",
        "env X=1 z",
        "env -S 'z x'",
        "xargs z",
        "xargs -n 1 z",
        "nohup z",
        "timeout 5 z",
    ),
    *(
        "timeout -k 1 5 z",
        "nice z",
        "nice -n 5 z",
        "nice -5 z",
        "setsid z",
        "setsid -w z",
        "stdbuf -o0 z",
        "sh -c z",
        "sudo sh -c z",
    ),
    *(
        "sudo env nohup z",
        "find . -exec z {} +",
        "busybox z",
        "ssh host z",
        "sh -c 'sudo z'",
        "flock f z",
        "watch z",
        "doas z",
    ),
)


@pytest.mark.parametrize("command", WRAPPED)
def test_a_wrapper_never_widens_what_runs_by_itself(command: str) -> None:
    wide = "".join(
        f'[[rule]]\nargs = ["{name}", "**"]\naction = "auto"\n'
        for name in sorted({*command.replace("'", "").split()} - {"z"})
        if name.isalpha()
    )
    assert (
        judged(f'{wide}[[rule]]\nargs = ["a", "**"]\naction = "auto"', *split(command)).action
        is Action.PROMPT
    )


@pytest.mark.parametrize("command", WRAPPED)
def test_what_is_forbidden_is_forbidden_behind_a_wrapper(command: str) -> None:
    rules = '[[rule]]\naction = "auto"\n[[rule]]\nargs = ["z", "**"]\naction = "never"'
    assert judged(rules, *split(command)).action is Action.NEVER


def test_a_wrapper_runs_by_itself_if_it_and_what_it_starts_may() -> None:
    rules = '[[rule]]\nargs = ["a", "**"]\naction = "auto"\n[[rule]]\nargs = ["nohup", "**"]\naction = "auto"'
    assert judged(rules, "nohup", "a", "x").action is Action.AUTO
    assert judged(rules, "sudo", "a", "x").action is Action.PROMPT


def test_a_rule_that_leaves_nothing_open_speaks_for_what_the_wrapper_starts() -> None:
    rules = '[[rule]]\nargs = ["sudo", "-n", "systemctl", "reload", "nginx"]\naction = "auto"'
    assert judged(rules, "sudo", "-n", "systemctl", "reload", "nginx").action is Action.AUTO
    assert judged(rules, "sudo", "-n", "systemctl", "stop", "nginx").action is Action.PROMPT


@pytest.mark.parametrize(
    "command",
    ["nohup a", "xargs a", "timeout -k 1 5 a", "sudo -n a", "sh -c 'a x'", "sh -c 'nohup a'"],
)
def test_a_rule_that_leaves_nothing_open_does_not_speak_for_a_fake_program(command: str) -> None:
    rules = policy(f"[[rule]]\nargs = {split(command)}\naction = 'auto'\neffect = 'read_only'")
    arguments = {"argv": split(command)}
    found = judge(rules, "command", arguments, surroundings=seen(), workspace=WORKSPACE, now=NOW)
    assert (found.action, found.effect) == (Action.AUTO, Effect.READ_ONLY)
    fake = seen("a", at=f"{WORKSPACE}/a")
    found = judge(rules, "command", arguments, surroundings=fake, workspace=WORKSPACE, now=NOW)
    assert (found.action, found.effect) == (Action.PROMPT, Effect.UNKNOWN)
