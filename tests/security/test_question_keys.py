"""A question may quote a secret.

Its key is shown everywhere, so the key says nothing of the question.
"""

import sys
from pathlib import Path

import pytest

from adjourn.core.ask import QuestionAsk
from adjourn.core.call import slot_of
from tests.e2e.shell import Document, Shell

SECRET = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"  # noqa: S105 -- made up
OTHER = "hunter2-and-more"
ASKS_TWICE = f"""
adjourn ask 'Is {SECRET} still valid?' || first=1
adjourn ask 'Use --password {OTHER} for it?' || exit 10
exit ${{first:-0}}
"""
ASKS_IN_PYTHON = f"""
import adjourn
print(adjourn.ask("Is {SECRET} still valid?"))
"""


@pytest.fixture
def told(shell: Shell) -> Path:
    """Have a notifier write down what it is told."""
    config = Path(shell.environment["XDG_CONFIG_HOME"]) / "adjourn" / "config.toml"
    config.parent.mkdir(parents=True)
    script = shell.script(
        f"cat >> '{shell.place}/told'; echo >> '{shell.place}/told'", name="notify.sh"
    )
    config.write_text(f'[[notify]]\ncommand = ["{shell.place}/{script}"]\n')
    return shell.place / "told"


def keys_of(manifest: Document) -> list[str]:
    questions = [question["question_id"] for question in manifest["pause_reason"]["questions"]]
    assert questions == [ask["key"] for ask in manifest["asks"]]
    return questions


def test_a_token_in_a_question_does_not_leave_by_its_key(shell: Shell, told: Path) -> None:
    script = shell.script(ASKS_TWICE)
    paused = shell.adjourn("run", "--", script, expect=10)
    (task,) = {ask["task_id"] for ask in shell.inbox()}
    said = [
        paused,
        shell.adjourn("show", task, "--output", "json"),
        shell.adjourn("inbox", "--output", "json"),
        shell.adjourn("resume", task, "text", expect=2),
        shell.adjourn("resume", task, "--answer", "nothing=x", expect=2),
        shell.adjourn("notify", "--flush", "--output", "json"),
    ]
    files = [told.read_bytes(), (shell.store / "session" / "pause.json").read_bytes()]
    for text in [each.raw + each.raw_err for each in said] + files:
        assert SECRET.encode() not in text
        assert OTHER.encode() not in text


def test_a_token_among_the_choices_does_not_leave_by_a_notification(
    shell: Shell, told: Path
) -> None:
    shell.paused(shell.script(f"adjourn ask Which? --choice {SECRET} --choice none || exit 10"))
    shell.adjourn("notify", "--flush")
    assert told.stat().st_size > 0
    assert SECRET.encode() not in told.read_bytes()


def test_the_text_of_a_question_is_no_part_of_its_key(shell: Shell) -> None:
    manifest = shell.paused(sys.executable, "-c", ASKS_IN_PYTHON)
    (key,) = keys_of(manifest)
    assert key.startswith("q_")
    assert len(key) == len("q_") + 12
    again = shell.paused(sys.executable, "-c", ASKS_IN_PYTHON)
    assert keys_of(again) == [key]  # stable: a script can know it beforehand


def test_answers_are_given_by_the_printed_key(shell: Shell) -> None:
    script = shell.script(
        "adjourn ask 'Which region?' > region || first=1; adjourn ask 'How many?' > many || exit 10; exit ${first:-0}"
    )
    manifest = shell.paused(script)
    first, second = keys_of(manifest)
    shell.adjourn(
        "resume", manifest["task_id"], "--answer", f"{first}=eu", "--answer", f"{second}=3"
    )
    assert (shell.place / "region").read_text() == "eu\n"
    assert (shell.place / "many").read_text() == "3\n"


def test_a_key_that_the_caller_gave_stays(shell: Shell) -> None:
    manifest = shell.paused(shell.script("adjourn ask 'Which region?' --key region || exit 10"))
    assert keys_of(manifest) == ["region"]


def test_a_given_key_that_holds_a_token_is_not_printed_and_its_ask_can_be_named_instead(
    shell: Shell,
) -> None:
    script = shell.script(
        f"adjourn ask Valid? --key {SECRET} || first=1; adjourn ask More? --key more || exit 10; exit ${{first:-0}}"
    )
    paused = shell.adjourn("run", "--", script, expect=10)
    assert SECRET not in paused.out + paused.err
    task = shell.inbox()[0]["task_id"]
    answers = [word for ask in shell.inbox() for word in ("--answer", f"{ask['id']}=yes")]
    shell.adjourn("resume", task, *answers)
    assert shell.state(task) == "succeeded"


def test_a_question_is_found_again_as_older_versions_found_it(shell: Shell) -> None:
    """A task that one of them paused gets its answer after an upgrade, and is not asked again."""
    manifest = shell.paused(shell.script("adjourn ask 'Which region?' || exit 10"))
    store = shell.open_store()
    with store.read() as view:
        ask, task = view.ask(manifest["asks"][0]["id"]), view.task(manifest["task_id"])
    store.close()
    assert isinstance(ask, QuestionAsk)
    assert ask.slot == slot_of(task.session_id, "ask:Which region?", 1)
