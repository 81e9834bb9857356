"""What runs under adjourn may ask, never decide."""

import pytest

from tests.e2e.shell import Shell

WAYS_IN = {
    "plainly": "{words}",
    "with an empty environment": 'env -i PATH="$PATH" {words} --store "$ADJOURN_STORE"',
    "without the run's variables": "env -u ADJOURN_RUN_ID -u ADJOURN_TASK_ID -u ADJOURN_CALL_ID {words}",
    "forked twice": "(setsid sh -c 'sleep 0.1; env -u ADJOURN_RUN_ID {words}; echo $? > forked' &); "
    "while [ ! -s forked ]; do sleep 0.05; done; code=$(cat forked); rm forked; (exit $code)",
}


@pytest.mark.parametrize("way", WAYS_IN)
def test_whoever_decides_inside_a_run_is_refused(shell: Shell, way: str) -> None:
    """Exit code 5, also with the environment cleared, and from an orphan.

    Its shim is still among its ancestors.
    """
    waiting = shell.paused(shell.agent("approved.sh"))["task_id"]
    question = shell.paused(shell.agent("deploy.sh"))["task_id"]
    approval, answer = (ask["id"] for ask in shell.inbox())
    decisions = [
        f"adjourn approve {approval}",
        f"adjourn reject {approval}",
        f"adjourn answer {answer} eu",
        f"adjourn settle {waiting}.tc_1 it-ran",
        f"adjourn resume {waiting} --approve-all",
        f"adjourn -c {question} eu",
    ]
    lines = [f"{WAYS_IN[way].format(words=words)}\necho $? >> codes" for words in decisions]
    shell.adjourn("run", "--", shell.script("\n".join(lines)))
    assert shell.lines("codes") == ["5"] * len(decisions)
    assert [ask["state"] for ask in shell.inbox()] == ["pending", "pending"]


def test_an_agent_cannot_answer_itself(shell: Shell) -> None:
    script = shell.script(
        """
        adjourn ask ok?
        adjourn answer "$(adjourn inbox --output json | jq -r '.asks[0].id')" yes
        echo $? > code
        exit 10
        """
    )
    shell.paused(script)
    assert shell.lines("code") == ["5"]
    assert len(shell.inbox()) == 1


def test_the_refusal_says_what_to_do_instead(shell: Shell) -> None:
    ask = shell.paused(shell.agent("approved.sh"))["asks"][0]["id"]
    said = shell.adjourn("run", "--", "sh", "-c", f"adjourn approve {ask}; exit 0").err
    assert "refused inside a run" in said
    assert "terminal of your own" in said


def test_looking_is_allowed_inside_a_run(shell: Shell) -> None:
    task = shell.paused(shell.agent("approved.sh"))["task_id"]
    look = f"adjourn inbox && adjourn tasks && adjourn show {task} && adjourn runs {task} && adjourn logs {task}"
    assert task[:8] in shell.adjourn("run", "--", "sh", "-c", look).out
