"""`adjourn ask` inside a script: the answer if there is one, else a pause."""

import json

import pytest

from tests.e2e.shell import Shell, until


def test_the_nth_ask_of_a_key_gets_the_nth_answer(shell: Shell) -> None:
    """A-R50: also in a script that starts from its beginning each time."""
    script = shell.script(
        "for n in 1 2 3; do adjourn ask 'Next?' >> answers.$ADJOURN_RUN_ID || exit $?; done"
    )
    task = shell.paused(script)["task_id"]
    shell.adjourn("resume", task, "one", expect=10)
    shell.adjourn("resume", task, "two", expect=10)
    shell.adjourn("resume", task, "three")
    assert shell.lines(f"answers.{task}.4") == ["one", "two", "three"]


def test_a_key_names_the_question_whatever_its_words_are(shell: Shell) -> None:
    script = shell.script(
        """
        region=$(adjourn ask --key region "Which region, on day $(cat /proc/sys/kernel/random/uuid)?") || exit $?
        echo "$region"
        """
    )
    task = shell.paused(script)["task_id"]
    assert shell.adjourn("resume", task, "--answer", "region=eu=west").out == "eu=west\n"


def test_a_question_asked_anew_in_other_words_replaces_the_old_one(shell: Shell) -> None:
    script = shell.script(
        'echo x >> starts; adjourn ask --key k "words $(wc -l < starts)" || exit $?'
    )
    task = shell.paused(script)["task_id"]
    (first,) = shell.inbox()
    shell.adjourn("restart", task, expect=10)
    (second,) = shell.inbox()
    assert (first["prompt"], second["prompt"]) == ("words 1", "words 2")
    told = shell.adjourn("answer", first["id"], "late", expect=4)
    assert "withdrawn" in told.err


def test_several_questions_are_one_pause_and_each_has_its_answer(shell: Shell) -> None:
    """A script may ask all it wants to know before it leaves.

    It goes on when the last is answered.
    """
    script = shell.script(
        """
        a=$(adjourn ask --key a "first?"); one=$?
        b=$(adjourn ask --key b "second?"); two=$?
        [ $one = 0 ] && [ $two = 0 ] || exit 10
        echo "$a and $b"
        """
    )
    manifest = shell.paused(script)
    task = manifest["task_id"]
    assert [question["question_id"] for question in manifest["pause_reason"]["questions"]] == [
        "a",
        "b",
    ]
    first, second = shell.inbox()
    told = shell.adjourn("resume", task, "to which of them?", expect=2)
    assert "a, b" in told.err
    shell.adjourn("answer", first["id"], "eggs")
    assert shell.state(task) == "waiting"
    again = shell.json("resume", task, expect=10)
    assert [question["question_id"] for question in again["pause_reason"]["questions"]] == ["b"]
    assert len(shell.runs(task)) == 1
    shell.adjourn("answer", second["id"], "ham")
    assert shell.adjourn("resume", task).out == "eggs and ham\n"


def test_one_resume_may_answer_several_questions(shell: Shell) -> None:
    script = shell.script("adjourn ask --key a x; adjourn ask --key b y || exit $?")
    task = shell.paused(script)["task_id"]
    assert shell.adjourn("resume", task, "--answer", "a=1", "--answer", "b=2").out == "1\n2\n"


def test_only_the_choices_are_taken(shell: Shell) -> None:
    task = shell.paused(shell.agent("deploy.sh"))["task_id"]
    (ask,) = shell.inbox()
    for words in (
        ("answer", ask["id"], "mars"),
        ("resume", task, "EU"),
        ("resume", task, "--answer", "region="),
    ):
        told = shell.adjourn(*words, expect=2)
        assert "eu, us" in told.err
    assert shell.inbox()[0]["state"] == "pending"
    shell.adjourn("answer", ask["id"], "eu")


@pytest.mark.parametrize(
    "answer",
    ["", " ", "two\nlines\n", "it's $HOME `id` \\ \"", "--help", "ünï☃\u202e", "x" * 100_000],
)
def test_an_answer_arrives_as_it_was_given(shell: Shell, answer: str) -> None:
    """A-R57: what is said to a paused task is passed through, whatever it is."""
    task = shell.paused(shell.script("adjourn ask 'What?' > answer || exit $?"))["task_id"]
    shell.adjourn("resume", task, "--", answer)
    assert (shell.place / "answer").read_text() == f"{answer}\n"


def test_an_answer_is_there_for_machines_too(shell: Shell) -> None:
    task = shell.paused(shell.script("adjourn ask 'What?' --output json > answer || exit $?"))[
        "task_id"
    ]
    said = shell.place / "answer"
    (ask,) = shell.inbox()
    paused = {
        "schema_version": 1,
        "outcome": "paused",
        "ask_id": ask["id"],
        "answer": None,
        "settled_by": None,
    }
    assert json.loads(said.read_text()) == paused
    shell.adjourn("resume", task, "that")
    assert json.loads(said.read_text()) == paused | {
        "outcome": "answered",
        "answer": "that",
        "settled_by": shell.me,
    }


def test_outside_of_a_run_there_is_nobody_to_ask(shell: Shell) -> None:
    told = shell.adjourn("ask", "Anyone?", expect=2)
    assert "not inside a run" in told.err
    assert "adjourn run --" in told.err
    assert shell.database or not shell.store.exists()


def test_a_run_that_has_ended_cannot_ask(shell: Shell) -> None:
    task = shell.json("run", "--", "true")["task_id"]
    inside = {"ADJOURN_RUN_ID": f"{task}.1", "ADJOURN_STORE": str(shell.store)}
    assert "has ended" in shell.adjourn("ask", "Still?", env=inside, expect=4).err
    for nonsense in ("nobody.1", "../../x", f"{task}.99", f"{task}.x", task, "-"):
        shell.adjourn("ask", "Still?", env=inside | {"ADJOURN_RUN_ID": nonsense}, expect=3)
    assert shell.inbox() == []


def test_a_reply_must_fit_what_is_asked(shell: Shell) -> None:
    """A wrong verb is refused, and the right one is named."""
    shell.paused(shell.agent("deploy.sh"))
    shell.paused(shell.agent("approved.sh"))
    question, approval = shell.inbox()
    assert (
        f"adjourn answer {question['id']}" in shell.adjourn("approve", question["id"], expect=2).err
    )
    assert (
        f"adjourn answer {question['id']}" in shell.adjourn("reject", question["id"], expect=2).err
    )
    assert (
        f"adjourn approve {approval['id']}"
        in shell.adjourn("answer", approval["id"], "yes", expect=2).err
    )
    assert [ask["state"] for ask in shell.inbox()] == ["pending", "pending"]


def test_several_asks_are_decided_all_or_none(shell: Shell) -> None:
    for _ in range(3):
        shell.paused(shell.agent("approved.sh"))
    one, two, three = (ask["id"] for ask in shell.inbox())
    shell.adjourn("reject", two)
    told = shell.adjourn("approve", one, two, three, expect=4)
    assert f"ask {two} was rejected" in told.err
    assert [ask["id"] for ask in shell.inbox()] == [one, three]
    shell.adjourn("approve", one, three)
    assert shell.inbox() == []


def test_an_answer_that_comes_before_the_script_has_left_is_taken_at_once(shell: Shell) -> None:
    """There is nothing to wait for: its supervisor runs it again."""
    shell.script(
        "adjourn ask --key k now? > answer && exit 0; touch asked; until [ -e go ]; do sleep 0.02; done; exit 10"
    )
    process = shell.start("run", "--output", "json", "--", "./script.sh")
    until((shell.place / "asked").exists, what="it has asked")
    shell.adjourn("answer", shell.inbox()[0]["id"], "quick")
    (shell.place / "go").touch()
    out, _ = process.communicate(timeout=20)
    assert process.returncode == 0, out
    assert shell.lines("answer") == ["quick"]
    assert len(shell.runs(shell.json("tasks")["tasks"][0]["task_id"])) == 2


def test_an_answer_that_comes_at_once_does_not_strand_a_detached_run(shell: Shell) -> None:
    shell.script(
        "adjourn ask --key k now? > answer && exit 0; touch asked; until [ -e go ]; do sleep 0.02; done; exit 10"
    )
    task = shell.detached("./script.sh")
    until((shell.place / "asked").exists, what="it has asked")
    shell.adjourn("answer", shell.inbox()[0]["id"], "quick")
    (shell.place / "go").touch()
    shell.adjourn("wait", task, "--timeout", "20")
    assert shell.lines("answer") == ["quick"]
