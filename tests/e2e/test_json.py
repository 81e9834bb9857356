"""`--output json` everywhere: stdout is one JSON document and nothing else, in failures too."""

import json

import pytest

from tests.e2e.shell import ADJOURN, Shell


@pytest.fixture
def busy(shell: Shell) -> Shell:
    """Return a shell whose store has one of each: a success, a failure, an approval, a question."""
    shell.adjourn("run", "--", "true")
    shell.adjourn("run", "--", "false", expect=1)
    shell.adjourn("run", "--", shell.agent("approved.sh"), expect=10)
    shell.adjourn("run", "--", shell.agent("deploy.sh"), expect=10)
    return shell


def test_every_verb_answers_with_one_document(busy: Shell) -> None:
    """A-R31: and stderr is silent."""
    question, approval, failed, good = (task["task_id"] for task in busy.json("tasks")["tasks"])
    asks = [ask["id"] for ask in busy.inbox()]
    calls: list[tuple[tuple[str, ...], int]] = [
        (("tasks",), 0),
        (("tasks", "--state", "failed"), 0),
        (("inbox",), 0),
        (("show", good), 0),
        (("show", failed), 0),
        (("show", approval, "--full"), 0),
        (("runs", good), 0),
        (("logs", good), 0),
        (("logs", "-f", good), 0),
        (("wait", good), 0),
        (("wait", good, failed), 1),
        (("wait", approval), 10),
        (("answer", asks[1], "eu"), 0),
        (("reject", asks[0]), 0),
        (("resume", question), 10),
        (("restart", failed), 1),
        (("cancel", question), 0),
        (("prune", "--dry-run"), 0),
        (("prune", "--older-than", "0"), 0),
        (("store", "backup", "copy.db"), 0),
        (("run", "--detach", "--", "true"), 0),
        (("run", "--", "sh", "-c", "echo noise; echo noise >&2"), 0),
    ]
    for words, code in calls:
        at = words.index("--") if "--" in words else len(words)
        done = busy.adjourn(*words[:at], "--output", "json", *words[at:], expect=code)
        document = json.loads(done.raw)
        assert isinstance(document, dict), words
        assert document["schema_version"] == 1, words
        assert done.raw.endswith(b"}\n"), words
        assert done.err == "", words


@pytest.mark.parametrize(
    ("words", "code", "name"),
    [
        (("show", "nobody"), 3, "not_found"),
        (("approve", "nobody"), 3, "not_found"),
        (("resume", "nobody", "--approve-all"), 3, "not_found"),
        (("inbox", "--limit", "none"), 2, "usage"),
        (("run",), 2, "usage"),
        (("run", "--nonsense"), 2, "usage"),
        (("nonsense",), 2, "usage"),
        (("approve",), 2, "usage"),
        (("ask", "anyone?"), 2, "usage"),
        (("logs", "nobody"), 3, "not_found"),
        (("store", "backup", "/no/such/place/copy.db"), None, None),
        (("inbox", "--store", "/dev/null"), 5, "store_refused"),
    ],
)
def test_a_failure_is_one_document_with_code_sentence_and_way_out(
    busy: Shell, words: tuple[str, ...], code: int | None, name: str | None
) -> None:
    """A-R31: nothing on stderr, and the exit code says the same."""
    for spelling in (["--output", "json"], ["--output=json"]):
        done = busy.adjourn(*words, *spelling, expect=None)
        done.must(done.code if code is None else code)
        document = json.loads(done.raw)
        assert done.code != 0
        assert document["outcome"] == "failed"
        assert document["error"]["message"]
        assert document["error"]["way_out"]
        assert done.err == ""
        assert name in {None, document["error"]["code"]}


def test_errors_for_people_go_to_stderr_and_say_what_helps(busy: Shell) -> None:
    for words in (
        ("show", "nobody"),
        ("run",),
        ("inbox", "--limit", "0"),
        ("nonsense",),
        ("logs", "nobody"),
        ("settle", "x"),
    ):
        done = busy.adjourn(*words, expect=None)
        assert done.out == "", words
        assert done.err.startswith("adjourn: "), words
        assert "\n  try: " in done.err, words


def test_progress_is_on_stderr_only_with_verbose(shell: Shell) -> None:
    """A-R32: in JSON mode the command's own output is in its logs.

    With --verbose its stderr is passed on.
    """
    noisy = ("--", "sh", "-c", "echo out; echo err >&2")
    assert shell.adjourn("run", "--output", "json", *noisy).err == ""
    verbose = shell.adjourn("run", "--output", "json", "--verbose", *noisy)
    assert verbose.doc["outcome"] == "completed"
    assert "err" in verbose.err
    assert shell.adjourn("logs", verbose.doc["task_id"]).out == "out\n"


def test_a_document_is_utf8_whatever_the_locale(shell: Shell) -> None:
    shell.script("adjourn ask 'grün ☃ 😀?' || exit $?")
    shell.paused("./script.sh")
    for locale in ({"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C"}, {"PYTHONIOENCODING": "latin-1"}):
        assert shell.json("inbox", env=locale)["asks"][0]["prompt"] == "grün ☃ 😀?"
        assert shell.adjourn("inbox", env=locale).out.count("\n") == 2


def test_json_in_and_out_of_a_pipe(shell: Shell) -> None:
    """A-R73: what a workflow would write."""
    shell.agent("approved.sh")
    line = f"{ADJOURN} run --output json -- ./approved.sh | jq -e '.pause_reason.pending_tool_calls | length == 1'"
    assert shell.line(line).out == "true\n"
