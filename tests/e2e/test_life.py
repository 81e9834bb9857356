"""The whole life of a task: run, leave, decide, come back (A-R91)."""

import json
import stat
import time
from typing import Any

import pytest

from tests.e2e.shell import Shell


def test_a_command_pauses_is_approved_with_a_value_and_comes_back(shell: Shell) -> None:
    """C-R1, C-R4, C-R8, A-R3, A-R55, A-R56, D-R44.

    Run → 10 → inbox → approve --value → resume → 0, one task id.
    """
    manifest = shell.paused(shell.agent("approved.sh"))
    (ask,) = shell.inbox()
    assert (ask["kind"], ask["task_id"]) == ("approval", manifest["task_id"])
    receipt = shell.adjourn("approve", ask["id"], "--value", "only on tuesdays").out
    assert f"adjourn resume {manifest['task_id']}" in receipt
    assert shell.state(manifest["task_id"]) == "queued"
    done = shell.json("resume", manifest["task_id"])
    assert (done["outcome"], done["task_id"]) == ("completed", manifest["task_id"])
    assert shell.lines("effects") == ["done with only on tuesdays"]
    assert shell.inbox() == []


def test_an_approval_without_a_value_says_approved(shell: Shell) -> None:
    """C-R4, C-R8, C-R15."""
    manifest = shell.paused(shell.agent("approved.sh"))
    shell.line(manifest["resume_hint"])
    assert shell.lines("effects") == ["done with approved"]


def test_a_rejection_fails_the_task_and_leaves_an_event(shell: Shell) -> None:
    """C-R10, C-R11: rejected means failed, and the trail says so, with the reason."""
    manifest = shell.paused(shell.agent("approved.sh"))
    (ask,) = shell.inbox()
    shell.adjourn("reject", ask["id"], "--reason", "not on a friday")
    shown = shell.json("show", manifest["task_id"])
    assert (shown["outcome"], shown["state"]) == ("failed", "failed")
    assert "not on a friday" in shown["error"]["message"]
    text = shell.adjourn("show", manifest["task_id"]).out
    assert "ask rejected" in text
    assert "task refused" in text
    assert len(shell.lines("starts")) == 1
    shell.adjourn("resume", manifest["task_id"], expect=4)


def test_an_answer_reaches_the_script_that_asked(shell: Shell) -> None:
    """A-R40, A-R46: the answer is what `adjourn ask` prints on the next run."""
    manifest = shell.paused(shell.agent("deploy.sh"))
    assert manifest["pause_reason"]["type"] == "input_required"
    shell.adjourn("answer", shell.inbox()[0]["id"], "us")
    second = shell.json("resume", manifest["task_id"], expect=10)
    assert second["pause_reason"]["type"] == "tool_approval_required"
    shell.adjourn("approve", shell.inbox()[0]["id"])
    shell.adjourn("resume", manifest["task_id"])
    assert shell.lines("effects") == ["deployed to us with approved"]


def test_three_processes_are_one_task(shell: Shell) -> None:
    """A-R61, A-R5, A-R56, A-R50.

    A pause, a decision by checkpoint, another pause, an answer by checkpoint, done.
    """
    script = shell.script(
        """
        if [ ! -e planned ]; then [ "$AUTO_APPROVAL" ] || exit 90; touch planned; fi
        word=$(adjourn ask "shall I proceed?") || exit $?
        echo "$word" > effects
        """
    )
    first = shell.paused(script)
    second = shell.adjourn(
        "-c", first["checkpoint_id"], "--approve", "tc_2", "--output", "json", expect=10
    ).doc
    third = shell.adjourn("-c", second["checkpoint_id"], "yes, proceed", "--output", "json").doc
    assert len({first["checkpoint_id"], second["checkpoint_id"], third["checkpoint_id"]}) == 3
    assert {first["task_id"]} == {second["task_id"], third["task_id"]}
    assert shell.lines("effects") == ["yes, proceed"]


def test_while_paused_nothing_of_it_runs(shell: Shell) -> None:
    """A-R1, A-R2, A-R53, C-R16, C-R17: no process, nothing that listens, nothing that polls."""
    shell.paused(shell.script("sleep 300 & sleep 300 & exit 90"))
    assert shell.processes() == {}


def test_a_pause_has_no_timeout_and_shows_since_when_it_lasts(shell: Shell) -> None:
    """A-R48, A-R49, D-R39."""
    manifest = shell.paused(shell.agent("approved.sh"))
    (run,) = shell.runs(manifest["task_id"])
    assert run["paused_at"] == manifest["paused_at"]
    assert [ask["expires_at"] for ask in manifest["asks"]] == [None]
    time.sleep(1.1)
    assert "s ago" in shell.adjourn("inbox").out.splitlines()[1]
    assert shell.json("show", manifest["task_id"])["paused_at"] == manifest["paused_at"]


def test_a_task_may_pause_as_often_as_it_likes(shell: Shell) -> None:
    """A-R50: the n-th cycle is like the first."""
    script = shell.script(
        "for n in 1 2 3 4 5 6; do adjourn ask again? || exit $?; done; echo enough"
    )
    manifest = shell.paused(script)
    seen = {manifest["checkpoint_id"]}
    for n in range(5):
        manifest = shell.adjourn(
            "-c", manifest["checkpoint_id"], f"yes {n}", "--output", "json", expect=10
        ).doc
        seen.add(manifest["checkpoint_id"])
    assert len(seen) == 6
    assert (
        shell.adjourn("resume", manifest["task_id"], "yes 5").out
        == "yes 0\nyes 1\nyes 2\nyes 3\nyes 4\nyes 5\nenough\n"
    )


def test_a_success_is_completed_and_a_failure_failed(shell: Shell) -> None:
    """A-R21, A-R22, A-R30, A-R62: 0 is completed, any other exit failed, and the run says which."""
    good = shell.json("run", "--", "sh", "-c", "echo one; echo all is well")
    assert good["outcome"] == "completed"
    assert good["final_message"] == "all is well"
    assert good["steps_taken"] == 1
    assert good["checkpoint_id"]
    assert good["session_id"]
    bad = shell.json("run", "--", "sh", "-c", "exit 3", expect=1)
    assert (bad["outcome"], bad["state"]) == ("failed", "failed")
    assert "exit code 3" in bad["error"]["message"]
    killed = shell.json("run", "--", "sh", "-c", "kill -9 $$", expect=1)
    assert "signal 9" in killed["error"]["message"]


def test_plain_commands_and_agents_are_tasks_of_one_kind(shell: Shell) -> None:
    """A-R7, A-R8, A-R9, A-R10, A-R52.

    Exit code 10 is all that is known of a pause; there is one list and one life.
    """
    plain = shell.json("run", "--", "true")["task_id"]
    agent = shell.json("run", "--", "sh", "-c", 'echo \'{"my own": "words"}\'; exit 10', expect=10)[
        "task_id"
    ]
    states = {task["task_id"]: task["state"] for task in shell.json("tasks")["tasks"]}
    assert states == {plain: "succeeded", agent: "waiting"}


@pytest.mark.parametrize("code", ["10", "90"])
def test_the_manifest_of_an_approval_has_every_key_of_the_contract(shell: Shell, code: str) -> None:
    """A-R23 to A-R26, A-R54.

    One exit code for every pause, and the pending call with its arguments as an object.
    """
    manifest = shell.paused(shell.agent("approved.sh"), code)
    assert manifest["outcome"] == "paused"
    for key in ("checkpoint_id", "session_id", "agent_message", "resume_hint", "task_id", "run_id"):
        assert isinstance(manifest[key], str), key
    reason = manifest["pause_reason"]
    assert reason["type"] == "tool_approval_required"
    (call,) = reason["pending_tool_calls"]
    assert call["id"] == "tc_2"
    assert call["name"] == "command"
    assert call["arguments"]["argv"] == ["./approved.sh", code]
    assert call["arguments"]["env"] == {"AUTO_APPROVAL": "approved"}


def test_the_manifest_of_a_question_has_no_calls(shell: Shell) -> None:
    """A-R27: a type of its own, with the question and its choices."""
    manifest = shell.paused(shell.agent("deploy.sh"))
    reason = manifest["pause_reason"]
    assert reason["type"] == "input_required"
    assert reason["pending_tool_calls"] == []
    assert reason["questions"] == [
        {"question_id": "region", "text": "Which region?", "choices": ["eu", "us"]}
    ]
    assert manifest["agent_message"] == "Which region?"


def test_the_manifest_file_is_what_stdout_says_and_stays(shell: Shell) -> None:
    """A-R33, A-R34, A-R35: with and without --output json, for the task and for the newest pause, and after the resume."""
    manifest = shell.paused(shell.agent("approved.sh"))
    newest = shell.store / "session" / "pause.json"
    own = shell.store / "session" / manifest["task_id"] / "pause.json"
    assert json.loads(newest.read_text()) == json.loads(own.read_text()) == manifest
    shell.adjourn("run", "--", "./approved.sh", expect=10)
    assert json.loads(newest.read_text())["task_id"] != manifest["task_id"]
    shell.line(manifest["resume_hint"])
    assert json.loads(own.read_text()) == manifest


@pytest.mark.parametrize(
    "body",
    [
        '[ "$AUTO_APPROVAL" ] || exit 90',
        "adjourn ask 'Which region?' --choice eu --choice us || exit $?",
        'adjourn ask "it\'s $HOME; rm -rf / \\\\ `echo`" || exit $?',
        "adjourn ask --choice=-1 --choice=--help -- temperature? || exit $?",
        "adjourn ask --key a first; adjourn ask --key=--b second || exit $?",
        "adjourn ask --key 'a=b' --choice 'c d' x; adjourn ask --key 'q?' y || exit $?",
    ],
)
def test_the_resume_hint_run_by_a_shell_as_printed_goes_on_headless(
    shell: Shell, body: str
) -> None:
    """A-R28, A-R29."""
    manifest = shell.paused(shell.script(f"adjourn ask --help > /dev/null\n{body}\nexit 0"))
    before = len(shell.runs(manifest["task_id"]))
    assert manifest["checkpoint_id"] in manifest["resume_hint"]
    shell.line(manifest["resume_hint"])
    assert len(shell.runs(manifest["task_id"])) == before + 1
    assert shell.state(manifest["task_id"]) == "succeeded"


def test_the_resume_hint_of_a_named_store_works_from_anywhere(shell: Shell) -> None:
    """A-R29."""
    script = shell.agent("approved.sh")
    manifest = shell.json("run", "--store", "a store's place", "--", script, expect=10)
    shell.run("sh", "-c", manifest["resume_hint"], cwd="/")
    assert shell.lines("effects") == ["done with approved"]


def test_every_word_of_advice_is_a_command_that_works(shell: Shell) -> None:
    """Every pause prints the exact next command.

    Following the advice line by line leads to the end.
    """
    said = shell.adjourn("run", "--", shell.agent("deploy.sh"), expect=10).out
    for _ in range(2):
        said = [shell.line(line, expect=None) for line in advice(said) if " reject " not in line][
            -1
        ].out
    assert shell.lines("effects") == ["deployed to eu with approved"]


def advice(text: str) -> list[str]:
    """Return the commands that a pause proposes."""
    return [
        line.partition(":")[2].strip()
        for line in text.splitlines()
        if line.partition(":")[2].strip().startswith("adjourn ")
    ]


def test_a_workflow_detects_the_pause_and_resumes_in_a_later_step(shell: Shell) -> None:
    """A-R73, A-R74, A-R75: result.json is parseable, jq finds the ids, a later step goes on with --approve-all."""
    shell.agent("approved.sh")
    steps = """
    adjourn run --output json -- ./approved.sh > result.json
    echo "exit_code=$?" >> outputs
    grep -qx exit_code=10 outputs || exit 5
    checkpoint=$(jq -r .checkpoint_id result.json)
    jq -r '.pause_reason.pending_tool_calls[].id' result.json > pending
    adjourn -c "$checkpoint" --approve-all
    """
    shell.line(steps)
    assert shell.lines("pending") == ["tc_2"]
    assert shell.lines("effects") == ["done with approved"]


def test_ids_cannot_be_guessed(shell: Shell) -> None:
    """A-R83: 128 bit each, and none is like another."""
    one, two = shell.paused(shell.agent("approved.sh")), shell.paused("./approved.sh")
    names = [doc[key] for doc in (one, two) for key in ("task_id", "checkpoint_id", "session_id")]
    names += [doc["asks"][0]["id"] for doc in (one, two)]
    assert len(set(names)) == 8
    assert all(len(name) == 26 for name in names)


def test_the_store_is_as_private_as_its_owner(shell: Shell) -> None:
    """A-R82, A-R86: directories 0700, files 0600 whatever the umask.

    Git sees the policy and nothing else.
    """
    shell.agent("approved.sh")
    shell.line("umask 0; adjourn run -- ./approved.sh; adjourn wait --timeout 1 nobody; true")
    # A link has no mode
    files = [path for path in [shell.store, *shell.store.rglob("*")] if not path.is_symlink()]
    modes = {path: stat.S_IMODE(path.lstat().st_mode) for path in files}
    assert {
        path: oct(mode)
        for path, mode in modes.items()
        if mode != (0o700 if path.is_dir() else 0o600)
    } == {}
    if shell.database:
        return  # its files lie in no repository
    shell.line("git init -q . && touch .adjourn/policy.toml .adjourn/supervision.yaml")
    untracked = shell.line("git status --porcelain --untracked-files=all .adjourn").out.splitlines()
    names = {line.rpartition("/")[2] for line in untracked}
    assert names == {"policy.toml", "supervision.yaml"}


def test_every_decision_and_resume_is_on_record(shell: Shell) -> None:
    """A-R84: who, when, what; in `show --full`."""
    manifest = shell.paused(shell.agent("approved.sh"))
    shell.line(manifest["resume_hint"])
    history = shell.adjourn("show", "--full", manifest["task_id"]).out
    for words in (
        "task created",
        "run claimed",
        "call executing",
        "ask opened",
        "ask approved",
        "task queued",
        "run completed",
    ):
        assert words in history
    (line,) = [line for line in history.splitlines() if "ask approved" in line]
    assert shell.me in line


def test_stdin_is_empty_and_no_terminal_is_handed_down(shell: Shell) -> None:
    """A-R87, A-R88: nothing can block on a person who is not there."""
    shell.adjourn("run", "--", shell.agent("record.py"), expect=10)
    record: dict[str, Any] = json.loads(shell.lines("record")[0])
    assert record["stdin"] == "/dev/null"
    assert record["tty"] is False
    assert record["fds"] == [], "nothing of adjourn's is handed down"
