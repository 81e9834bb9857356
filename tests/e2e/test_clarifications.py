"""Agents that ask several questions, leave, and come back: real processes, real files."""

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.e2e.shell import Shell, until


def researcher(shell: Shell, linger: float = 0) -> tuple[str, ...]:
    return ("python3", shell.agent("researcher.py"), str(linger))


def response(shell: Shell, task: str, **answers: str) -> Path:
    lines = "".join(
        f"  - question_id: {key}\n    answer: {text}\n" for key, text in answers.items()
    )
    path = shell.store / "clarifications" / f"{task}.response.yaml"
    path.write_text(f"agent_id: {task}\nresponses:\n{lines}resume_signal: true\n")
    return path


def test_answers_by_command_come_back_through_the_library(shell: Shell) -> None:
    """B-R5, B-R20, B-R34, B-R38: exit code 10, the same task, and its report at the end."""
    paused = shell.json("run", "--", *researcher(shell), expect=10)
    task = paused["task_id"]
    assert [question["question_id"] for question in paused["pause_reason"]["questions"]] == [
        "Q1",
        "Q2",
        "Q3",
    ]
    done = shell.adjourn(
        "resume", task, "--answer", "Q1=one for one", "--answer", "Q2=many", "--answer", "Q3=friday"
    )
    assert done.out == "COMPLETION_REPORT one for one many friday\n"
    assert len(shell.runs(task)) == 2


def test_a_response_file_is_found_by_any_command_and_never_twice(shell: Shell) -> None:
    """B-R26, B-R27, B-R30."""
    task = shell.json("run", "--", *researcher(shell), expect=10)["task_id"]
    path = response(shell, task, Q1="yes", Q2="one", Q3="no")
    assert shell.inbox() == []
    assert shell.state(task) == "queued"
    os.utime(path)
    assert shell.adjourn("resume", task).out == "COMPLETION_REPORT yes one no\n"
    assert shell.state(task) == "succeeded"


def test_a_refused_response_is_told_and_changes_nothing(shell: Shell) -> None:
    task = shell.json("run", "--", *researcher(shell), expect=10)["task_id"]
    response(shell, task, Q1="yes", Q2="neither", Q3="no")
    told = shell.adjourn("inbox")
    assert "is refused" in told.err
    assert "takes one of: one, many" in told.err
    assert shell.state(task) == "waiting"
    assert "is refused" in shell.adjourn("inbox").err, "as long as it is waited for"
    assert "the response file is not taken: ask " in shell.adjourn("show", task).out
    assert (
        "the response file is not taken: ask "
        in shell.adjourn("show", task, "--output", "json").err
    )
    response(shell, task, Q1="yes", Q2="one", Q3="no")
    assert "response file" not in shell.adjourn("show", task).out
    assert shell.state(task) == "queued"


def test_a_response_for_nobody_is_told_once(shell: Shell) -> None:
    shell.json("run", "--", *researcher(shell), expect=10)
    response(shell, "nobody\x1b[31m", Q1="yes")
    told = shell.adjourn("tasks").err
    assert "no task nobody" in told
    assert "\x1b" not in told
    assert shell.adjourn("tasks").err == ""


def test_a_worker_finds_the_file_and_resumes(shell: Shell) -> None:
    """B-R29, B-R37, B-R48: within its next look, five seconds at most."""
    task = shell.json("run", "--", *researcher(shell), expect=10)["task_id"]
    (shell.store / "supervision.yaml").write_text("poll_interval: 0.2\n")
    worker = shell.start("worker")
    try:
        response(shell, task, Q1="yes", Q2="one", Q3="no")
        until(lambda: shell.state(task) == "succeeded", what="the agent has come back")
    finally:
        worker.terminate()
        worker.communicate(timeout=20)


def test_a_foreign_agent_needs_the_files_only(shell: Shell) -> None:
    """B-R15, B-R20, B-R31, B-R36."""
    paused = shell.json("run", "--", shell.agent("foreign.sh"), expect=10)
    task = paused["task_id"]
    assert paused["pause_reason"]["questions"][0]["text"] == "Which pattern?"
    shell.adjourn("resume", task, "one for one")
    assert shell.lines("heard") == ['"one for one"']
    prompt = shell.adjourn("show", task, "--resume-prompt").out
    assert "Files created: file-watcher.spec.md, actor.ts" in prompt


def test_a_foreign_agent_may_ask_again_under_the_same_name(shell: Shell) -> None:
    """B-R31, B-R45: its second request is a new one, whatever its questions are called.

    The first answer is not its answer.
    """
    shell.agent("foreign.sh")
    script = shell.script(
        'response="$ADJOURN_STORE/clarifications/$ADJOURN_TASK_ID.response.yaml"\n'
        '[ -f "$response" ] && sed -n "s/.*answer: *//p" "$response" >> all && rm "$response"\n'
        "[ -e all ] && [ $(wc -l < all) = 2 ] && exit 0\n"
        "./foreign.sh\n"
        'change="s/Which pattern/And who reviews it/; s/implementation/review/"\n'
        '[ -e all ] && sed -i "$change" "$ADJOURN_STORE"/c*/"$ADJOURN_TASK_ID".*\n'
        "exit 10"
    )
    task = shell.json("run", "--", script, expect=10)["task_id"]
    again = shell.json("resume", task, "one for one", expect=10)
    assert again["pause_reason"]["questions"][0]["text"] == "And who reviews it?"
    shell.adjourn("resume", task, "Ada")
    assert shell.lines("all") == ['"one for one"', '"Ada"']


def test_a_run_that_follows_finds_answers_and_prompt_in_its_environment(shell: Shell) -> None:
    """B-R32."""
    script = shell.script(
        '[ "$ADJOURN_ANSWERS" ] && { cp "$ADJOURN_ANSWERS" a; cp "$ADJOURN_RESUME_PROMPT" p; exit 0; }; exec ./foreign.sh'
    )
    shell.agent("foreign.sh")
    task = shell.json("run", "--", script, expect=10)["task_id"]
    shell.adjourn("resume", task, "one for one")
    assert msgspec.json.decode((shell.place / "a").read_bytes()) == {"Q1": "one for one"}
    assert (shell.place / "p").read_text().startswith("## RESUME FROM CLARIFICATION\n")


def test_the_lines_of_the_protocol_are_said_with_verbose_only(shell: Shell) -> None:
    """B-R3, B-R6, B-R18, B-R19, B-R24, B-R28, B-R33, B-R35."""
    quiet = shell.adjourn("run", "--", *researcher(shell), expect=10)
    assert "[CHECKPOINT" not in quiet.err
    loud = shell.adjourn("run", "--verbose", "--", *researcher(shell), expect=10)
    for line in (
        "[CLARIFICATION] Polling briefly",
        "[CHECKPOINT_SAVED] waiting_clarification",
        "[TRACKED] Agent",
    ):
        assert line in loud.err


@pytest.mark.parametrize("late", ["answer", "file"])
def test_a_quick_answer_is_taken_in_the_same_process(shell: Shell, late: str) -> None:
    """B-R5: the process never left."""
    running = shell.start("run", "--", *researcher(shell, 30))
    until(lambda: len(shell.inbox()) == 3 if shell.store.exists() else False, what="it asks")
    task = shell.inbox()[0]["task_id"]
    if late == "file":
        response(shell, task, Q1="yes", Q2="one", Q3="no")
        shell.adjourn("tasks")
    else:
        for ask, text in zip(shell.inbox(), ("yes", "one", "no"), strict=True):
            shell.adjourn("answer", ask["id"], text)
    running.communicate(timeout=20)
    assert running.returncode == 0
    assert len(shell.runs(task)) == 1


@pytest.mark.parametrize(
    ("setting", "told"), [("0", "0s"), ("30s", "30s"), ("5m", "300s"), (None, "60s")]
)
def test_how_long_an_agent_lingers_is_set_for_the_store(
    shell: Shell, setting: str | None, told: str
) -> None:
    """B-R8, B-R41: 30 s, 60 s and 5 min; answered at once, nobody waits that long here."""
    shell.json("run", "--", "true")
    if setting:
        (shell.store / "supervision.yaml").write_text(f"linger: {setting}\n")
    running = shell.start(
        "run", "--", "python3", "-c", "import adjourn; adjourn.clarify(['Which?'])"
    )
    until(lambda: bool(shell.inbox()), what="it asks")
    ask = shell.inbox()[0]
    needed = shell.store / "clarifications" / f"{ask['task_id']}.needed.yaml"
    until(needed.exists, what="the request is there")
    assert f"brief_poll_duration: {told}\n" in needed.read_text()
    shell.adjourn("answer", ask["id"], "this")
    running.communicate(timeout=20)
    assert len(shell.runs(ask["task_id"])) == 1


def test_nonsense_in_supervision_yaml_is_told_to_an_agent_before_it_asks(shell: Shell) -> None:
    shell.json("run", "--", "true")
    (shell.store / "supervision.yaml").write_text("linger: soon\n")
    failed = shell.adjourn(
        "run", "--", "python3", "-c", "import adjourn; adjourn.clarify(['Which?'])", expect=None
    )
    assert failed.code == 1
    assert "linger" in failed.err
    assert shell.inbox() == []


ASKING = """adjourn clarify "Which pattern?" "Who reviews it?" --linger 0s > answers || exit $?
{ read -r pattern; read -r reviewer; } < answers
echo "$pattern, reviewed by $reviewer" >> heard"""


def test_a_shell_script_asks_several_questions_and_comes_back_with_the_answers(
    shell: Shell,
) -> None:
    """B-R40, B-R45: as the library does."""
    paused = shell.json("run", "--", shell.script(ASKING), expect=10)
    assert [question["question_id"] for question in paused["pause_reason"]["questions"]] == [
        "Q1",
        "Q2",
    ]
    response(shell, paused["task_id"], Q2="Ada", Q1="one for one")
    shell.adjourn("resume", paused["task_id"])
    assert shell.lines("heard") == ["one for one, reviewed by Ada"]


def test_a_shell_script_hands_over_a_request_and_a_checkpoint(shell: Shell) -> None:
    """B-R12 to B-R17, B-R39 to B-R42."""
    (shell.place / "request.yaml").write_text(
        "reason: two patterns\nblocked_at: selection\nquestions:\n  - question_id: P\n    text: Which?\n    choices: [a, b]\n"
        "parallel_work_available: |\n  Can implement:\n  - Tests\n"
    )
    (shell.place / "state.json").write_text(
        '{"agentId": "x", "workState": {"completed": ["logs"]}, "metadata": {"tokensBurned": 7}, "filesCreated": ["a.md"]}'
    )
    script = shell.script(
        "adjourn clarify --from request.yaml --checkpoint state.json --linger 0s --output json"
    )
    task = shell.json("run", "--", script, expect=10)["task_id"]
    left = msgspec.json.decode(
        (shell.store / "checkpoints" / f"{task}.checkpoint.json").read_bytes()
    )
    assert (left["agentId"], left["metadata"]["tokensBurned"]) == (task, 7)
    assert left["workState"] == {
        "completed": ["logs"],
        "inProgress": [],
        "blocked": [],
        "parallelWorkAvailable": ["Tests"],
    }
    assert left["context"]["filesCreated"] == ["a.md"]
    assert (
        "work_continues: true"
        in (shell.store / "clarifications" / f"{task}.needed.yaml").read_text()
    )
    assert shell.adjourn("answer", shell.inbox()[0]["id"], "c", expect=2).code == 2
    done = shell.adjourn("resume", task, "b")
    assert msgspec.json.decode(done.raw)["answers"] == {"P": "b"}


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("adjourn clarify", "name the questions"),
        ("adjourn clarify Q --from /dev/null", "name the questions"),
        ("adjourn clarify --from /dev/null", "it is empty"),
        ("echo questions: | adjourn clarify --from -", "it asks nothing"),
        ("adjourn clarify --from /dev/zero", "more than 1048576 bytes"),
        ("adjourn clarify Q --checkpoint /bin/sh", "the checkpoint: "),
        ("adjourn clarify Q --linger soon", "not a time"),
        ("adjourn clarify $(printf '\\377')", "not UTF-8"),
        ("env -u ADJOURN_RUN_ID adjourn clarify Q", "cannot ask a person"),
    ],
)
def test_a_request_that_makes_no_sense_asks_nobody(shell: Shell, words: str, why: str) -> None:
    failed = shell.adjourn("run", "--", "sh", "-c", f"{words}; test $? = 2")
    assert why in failed.err
    assert shell.inbox() == []


BROKEN = {
    "yaml": ("agent_id: [", "it is not whole: "),
    "signal": ("agent_id: {task}\nresponses: []\n", "it is not whole: it has no resume_signal"),
    "false": ("agent_id: {task}\nresume_signal: false\n", "resume_signal is false, not true"),
    "elsewhere": ("anything", "its checkpoint names {path}, and adjourn reads {ours} only"),
}


@pytest.mark.parametrize("way", BROKEN)
def test_a_response_that_cannot_be_used_is_named_by_inbox_resume_show_and_worker(
    shell: Shell, way: str
) -> None:
    """B-R4, B-R28, B-R31: nobody waits for a task that has its answer in the wrong place."""
    shell.agent("foreign.sh")
    other = shell.place / "other.response.yaml"
    named = f'"readClarificationFrom": "{other}", "nextPhase"'
    change = f's|"nextPhase"|{named}|' if way == "elsewhere" else ""
    script = shell.script(
        f"./foreign.sh; sed -i '{change}' \"$ADJOURN_STORE\"/checkpoints/*; exit 0"
    )
    task = shell.json("run", "--", script, expect=10)["task_id"]
    ours = shell.store / "clarifications" / f"{task}.response.yaml"
    content, why = BROKEN[way]
    path = other if way == "elsewhere" else ours
    path.write_text(content.format(task=task))
    os.utime(path, (1, 1))  # nobody writes to it any more
    why = why.format(path=path, ours=ours)
    for words in (("inbox",), ("inbox", "--output", "json"), ("show", task)):
        assert f"the response for {task} is refused: {why}" in shell.adjourn(*words).err
    assert why in shell.adjourn("show", task).out
    assert why in shell.adjourn("resume", task, expect=10).err
    worker = shell.adjourn("worker", "--once")
    assert f"the response for {task} is refused: {why}" in worker.out + worker.err


def test_the_files_of_a_clarification_are_in_show_the_manifest_and_the_pause_file(
    shell: Shell,
) -> None:
    """B-R28: request, response and checkpoint, with the agent and the moment."""
    paused = shell.json("run", "--", *researcher(shell), expect=10)
    task, files = paused["task_id"], paused["clarification"]
    assert files["agent_id"] == task
    assert files["timestamp"].startswith("20")
    assert Path(files["clarification_path"]).read_text().startswith("[CLARIFICATION_NEEDED]")
    left = msgspec.json.decode(Path(files["checkpoint_path"]).read_bytes())
    assert left["clarificationRequestId"] == files["request_id"]
    assert left["resumeInstructions"]["readClarificationFrom"] == files["response_path"]
    assert shell.json("show", task)["clarification"] == files
    pause = msgspec.json.decode((shell.store / "session" / "pause.json").read_bytes())
    assert pause["clarification"] == files
    shown = shell.adjourn("show", task).out
    assert all(
        files[f"{name}_path"] in shown for name in ("clarification", "response", "checkpoint")
    )
    shell.adjourn("resume", task, "--answer", "Q1=a", "--answer", "Q2=many", "--answer", "Q3=b")
    assert "clarification" not in shell.json("show", task)


def test_checkpoints_are_as_their_published_schema_says(shell: Shell) -> None:
    """B-R47: printed by the program, anywhere, and the same as in the reference."""
    schema = msgspec.json.decode(shell.adjourn("clarify", "--schema").raw)
    page = Path(__file__).parents[2] / "docs" / "reference" / "checkpoint.schema.json"
    assert schema == msgspec.json.decode(page.read_bytes())
    paused = shell.json("run", "--", *researcher(shell), expect=10)
    left = msgspec.json.decode(Path(paused["clarification"]["checkpoint_path"]).read_bytes())
    assert problems_of(left, schema, schema) == []
    assert problems_of({**left, "workState": 1}, schema, schema) != []
    assert problems_of({"agentId": "x"}, schema, schema) != []


def problems_of(value: Any, rule: Any, schema: Any) -> list[str]:
    """Return what breaks a schema, as far as the words go that the published one uses."""
    if "$ref" in rule:
        return problems_of(value, schema["$defs"][rule["$ref"].rpartition("/")[2]], schema)
    known = {"$schema", "$defs", "title", "description", "default", "type", "properties"}
    known |= {"required", "items", "anyOf"}
    assert rule.keys() <= known, rule.keys() - known
    types = {"object": dict, "array": list, "string": str, "integer": int}
    if "type" in rule and not isinstance(value, types[rule["type"]]):
        return [f"{value!r} is no {rule['type']}"]
    found = [f"{name} is missing" for name in rule.get("required", ()) if name not in value]
    for name, inner in rule.get("properties", {}).items():
        found += problems_of(value[name], inner, schema) if name in value else []
    for item in value if "items" in rule else ():
        found += problems_of(item, rule["items"], schema)
    return found
