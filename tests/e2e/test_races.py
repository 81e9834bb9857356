"""Several at once: one wins, and the others are told who."""

import pytest

from tests.e2e.shell import Shell

ROUNDS = 50
DECIDERS = 8


def test_of_two_who_resume_at_once_one_runs_it(shell: Shell) -> None:
    """C-R14, C-R18: fifty times over: one run each, and the other gets 4."""
    script = shell.script(
        'echo "start $ADJOURN_RUN_ID" >> starts; echo "{\\"round\\": \\"$ADJOURN_RUN_ID\\"}"; exit 90'
    )
    manifest = shell.paused(script)
    for number in range(2, ROUNDS + 2):
        words = ("resume", manifest["checkpoint_id"], "--approve-all", "--output", "json")
        pair = [shell.start(*words) for _ in range(2)]
        outputs = [process.communicate(timeout=60)[0] for process in pair]
        codes = sorted(process.returncode for process in pair)
        assert codes == [4, 10], (number, codes, outputs)
        assert len(shell.lines("starts")) == number
        manifest = shell.json("show", manifest["task_id"])
    assert shell.lines("starts") == [
        f"start {manifest['task_id']}.{number}" for number in range(1, ROUNDS + 2)
    ]


@pytest.mark.parametrize("words", [(), ("--detach",)])
def test_of_several_who_take_a_queued_task_one_gets_it(
    shell: Shell, words: tuple[str, ...]
) -> None:
    """Ten times over, foreground and detached.

    The loser is told that it runs, or how it ended, and starts nothing.
    """
    shell.agent("approved.sh")
    for number in range(1, 11):
        task = shell.paused("./approved.sh")["task_id"]
        shell.adjourn("approve", shell.inbox()[0]["id"])
        four = [shell.start("resume", task, *words) for _ in range(4)]
        outputs = [process.communicate(timeout=60) for process in four]
        codes = sorted(process.returncode for process in four)
        assert codes[0] == 0, outputs
        assert set(codes) <= {0, 4}, outputs
        if not words:
            assert codes == [0, 4, 4, 4]
            assert all(f"{shell.me} was first, at 2" in err.decode() for _, err in outputs if err)
            assert all(f"with run {task}.2" in err.decode() for _, err in outputs if err), outputs
        shell.adjourn("wait", task)
        assert len(shell.lines("effects")) == number


def test_of_many_who_decide_at_once_one_wins_and_all_others_are_told(shell: Shell) -> None:
    """C-R14: who, when and what, whether they approved or rejected."""
    for _ in range(5):
        manifest = shell.paused(shell.agent("approved.sh"))
        ask = manifest["asks"][0]["id"]
        ways = [
            ("approve", ask, "--value", f"v{n}") if n % 2 else ("reject", ask, "--reason", f"v{n}")
            for n in range(DECIDERS)
        ]
        many = [shell.start(*words) for words in ways]
        said = [process.communicate(timeout=60) for process in many]
        codes = [process.returncode for process in many]
        assert sorted(codes) == [0] + [4] * (DECIDERS - 1), said
        (settled,) = shell.json("show", manifest["task_id"])["asks"]
        assert settled["reply"] == f"v{codes.index(0)}"
        for code, (_, err) in zip(codes, said, strict=True):
            if code == 4:
                for fact in (
                    settled["state"],
                    settled["settled_by"],
                    settled["settled_at"],
                    settled["reply"],
                ):
                    assert fact in err.decode()


def test_many_who_start_at_once_all_start(shell: Shell) -> None:
    """The first of them makes the store; nobody sees a locked database."""
    many = [shell.start("run", "--", "sh", "-c", "echo x >> starts") for _ in range(DECIDERS)]
    said = [process.communicate(timeout=60) for process in many]
    assert [process.returncode for process in many] == [0] * DECIDERS, said
    assert len(shell.lines("starts")) == DECIDERS
    assert len(shell.json("tasks")["tasks"]) == DECIDERS


@pytest.mark.parametrize("words", [(), ("a text",), ("--approve-all",), ("--answer", "k=v")])
def test_who_resumes_a_task_that_somebody_else_resumed_is_told_by_whom(
    shell: Shell, words: tuple[str, ...]
) -> None:
    """A-R60, part 2 row 20: whatever else it says, and also if the other has finished by then."""
    task = shell.paused(shell.agent("approved.sh"))["task_id"]
    shell.adjourn("resume", task, "--approve-all")
    late = shell.adjourn("resume", task, *words, expect=4)
    assert f"task {task} is succeeded: there is nothing to resume" in late.err
    assert f"; {shell.me} was first, at 2" in late.err
    assert f", with run {task}.2\n" in late.err
