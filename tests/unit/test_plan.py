"""What a plan may say, where it says something else, and what is ready."""

import random

import pytest
from msgspec.structs import replace

from adjourn.core.plan.plan import (
    Item,
    ItemState,
    Known,
    Plan,
    Progress,
    in_order,
    progress_of,
    words_of,
)
from adjourn.core.plan.plan_file import MOST_TASKS, Runners, read_plan
from adjourn.core.states import TaskState
from adjourn.testing.values import a_task

A_TASK = '[[task]]\nid = "a"\ncommand = ["true"]\n'

WRONG = {
    "[[task]\n": (1, "it is not TOML"),
    f"\ufeff{A_TASK}": (1, "it begins with a byte order mark"),
    "": (1, "there is no task"),
    "# nothing\nreview = true\n": (1, "there is no task"),
    "task = 1\n": (1, "write [[task]], with two brackets"),
    '[task]\nid = "a"\n': (1, "write [[task]], with two brackets"),
    f"reviews = true\n{A_TASK}": (1, "unknown key `reviews`: did you mean `review`?"),
    f"review = 1\n{A_TASK}": (1, "`review` must be true or false"),
    f"workspace = 1\n{A_TASK}": (1, "`workspace` must be text"),
    f"{A_TASK}depends = []\n": (4, "unknown key `depends`"),
    f"{A_TASK}need = []\n": (4, "unknown key `need`: did you mean `needs`?"),
    f"{A_TASK}\n{A_TASK}": (6, "the id `a` is taken by the task of line 1"),
    f'{A_TASK}needs = ["b"]\n': (4, "no task is called `b`"),
    f'{A_TASK}needs = "a"\n': (4, "`needs` must be a list of ids"),
    f"{A_TASK}needs = [1]\n": (4, "`needs` must be a list of ids"),
    f'{A_TASK}needs = ["a", "a"]\n': (4, "`needs` names a task twice"),
    f'{A_TASK}needs = ["a"]\n': (4, "the needs form a circle: `a` needs `a`"),
    f'{A_TASK}runner = "cobol"\n': (4, "`runner` must be one of"),
    f"{A_TASK}runner = []\n": (4, "`runner` must be one of"),
    f'{A_TASK}runner = "claude"\n': (3, "the runner `claude` takes a `prompt`, and no `command`"),
    f'{A_TASK}prompt = "do it"\n': (4, "the runner `command` takes a `command`, and no `prompt`"),
    f"{A_TASK}review = 'yes'\n": (4, "`review` must be true or false"),
    f"{A_TASK}grace = -1\n": (4, "`grace` must be a number of seconds"),
    f"{A_TASK}grace = true\n": (4, "`grace` must be a number of seconds"),
    '[[task]]\ncommand = ["true"]\n': (1, "this task has no `id`"),
    '[[task]]\nid = ""\ncommand = ["true"]\n': (2, "`id` must be a word"),
    '[[task]]\nid = "a b"\ncommand = ["true"]\n': (2, "`id` must be a word"),
    '[[task]]\nid = 7\ncommand = ["true"]\n': (2, "`id` must be a word"),
    '[[task]]\nid = "a\\u202e"\ncommand = ["true"]\n': (2, "`id` must be a word"),
    '[[task]]\nid = "a"\n': (1, "give it a `command` or a `prompt`"),
    '[[task]]\nid = "a"\nrunner = "codex"\n': (1, "give it a `prompt`"),
    '[[task]]\nid = "a"\ncommand = []\n': (3, "`command` must be a list of words"),
    '[[task]]\nid = "a"\ncommand = [""]\n': (3, "`command` must be a list of words"),
    '[[task]]\nid = "a"\ncommand = "true"\n': (3, "`command` must be a list of words"),
    '[[task]]\nid = "a"\ncommand = ["true", 1]\n': (3, "`command` must be a list of words"),
    '[[task]]\nid = "a"\ncommand = ["a\\u0000"]\n': (3, "`command` must be a list of words"),
    f"{A_TASK}options = {{}}\n": (4, "the runner `command` takes a `command`, and no `options`"),
    '[[task]]\nid = "a"\nprompt = "x"\noptions = 1\n': (4, "`options` must be a table of settings"),
    '[[task]]\nid = "a"\nprompt = "x"\noptions = { a = [] }\n': (
        4,
        "`options` must be a table of settings",
    ),
    '[[task]]\nid = "a"\nprompt = " "\n': (3, "`prompt` must be text"),
    '[[task]]\nid = "a"\nprompt = ["x"]\n': (3, "`prompt` must be text"),
}

RUNNERS = Runners(names=("command", "agent", "claude", "codex"), command="command", agent="agent")


@pytest.mark.parametrize("text", WRONG, ids=repr)
def test_what_is_wrong_is_told_with_its_line(text: str) -> None:
    line, what = WRONG[text]
    problems = read_plan(text, source="plan.toml", runners=RUNNERS).problems
    assert problems, text
    assert what in problems[0].what
    assert (problems[0].source, problems[0].line) == ("plan.toml", line)


def test_a_circle_is_told_at_a_need_that_is_part_of_it() -> None:
    text = (
        A_TASK
        + '[[task]]\nid = "b"\ncommand = ["true"]\nneeds = ["a", "d"]\n'
        + '[[task]]\nid = "c"\ncommand = ["true"]\nneeds = ["b"]\n'
        + '[[task]]\nid = "d"\ncommand = ["true"]\nneeds = ["c"]\n'
        + '[[task]]\nid = "e"\ncommand = ["true"]\nneeds = ["d"]\n'
    )
    (problem,) = read_plan(text, source="plan.toml", runners=RUNNERS).problems
    assert problem.what == "the needs form a circle: `b` needs `d` needs `c` needs `b`"
    assert (problem.line, problem.column) == (7, 15)


def test_everything_that_is_wrong_is_told_in_order() -> None:
    text = f'{A_TASK}grace = "x"\nfoo = 1\n[[task]]\nid = 1\n'
    problems = read_plan(text, source="plan.toml", runners=RUNNERS).problems
    assert [problem.line for problem in problems] == sorted(problem.line for problem in problems)
    assert len(problems) == 4


def test_too_many_tasks_are_refused() -> None:
    text = "".join(
        f'[[task]]\nid = "t{number}"\ncommand = ["true"]\n' for number in range(MOST_TASKS + 1)
    )
    (problem,) = read_plan(text, source="plan.toml", runners=RUNNERS).problems
    assert "1,000 are the most" in problem.what


def test_a_plan_says_what_its_tasks_do_not() -> None:
    text = f'review = true\npause_on_approval = true\n{A_TASK}[[task]]\nid = "b"\nprompt = "go"\nreview = false\nrunner = "codex"\n'
    content = read_plan(text, source="plan.toml", runners=RUNNERS)
    one, two = content.items
    assert (one.review, one.pause_on_approval, one.runner, one.command) == (
        True,
        True,
        "command",
        ("true",),
    )
    assert (two.review, two.pause_on_approval, two.runner, two.prompt) == (
        False,
        True,
        "codex",
        "go",
    )
    assert (one.line, two.line, content.workspace) == (3, 6, ".")


# --- what is ready --------------------------------------------------------------------------------


def a_plan(**needs: str) -> Plan:
    items = [
        Item(id=name, line=1, runner="command", command=("true",), needs=tuple(wanted.split()))
        for name, wanted in needs.items()
    ]
    return Plan(path="/srv/plan.toml", workspace="/srv", items=tuple(items))


DIAMOND = a_plan(top="", left="top", right="top", bottom="left right", alone="")


def progress(plan: Plan = DIAMOND, **states: TaskState) -> Progress:
    return progress_of(
        plan, {name: Known(task=a_task(name, state=state)) for name, state in states.items()}
    )


def states_of(found: Progress) -> dict[str, str]:
    return {stand.item.id: stand.state.value for stand in found.stands}


def next_of(found: Progress) -> str | None:
    return found.next.item.id if found.next else None


def test_what_needs_nothing_is_ready_and_the_first_is_next() -> None:
    assert states_of(progress()) == {
        **dict.fromkeys(("top", "alone"), "ready"),
        **dict.fromkeys(("left", "right", "bottom"), "pending"),
    }
    assert next_of(progress()) == "top"


def test_a_failed_task_blocks_only_what_needs_it() -> None:
    found = progress(top=TaskState.SUCCEEDED, left=TaskState.FAILED)
    assert states_of(found) == {
        "top": "succeeded",
        "left": "failed",
        "right": "ready",
        "bottom": "blocked",
        "alone": "ready",
    }
    assert next_of(found) == "right"
    assert found.outcome == "paused"
    done = progress(
        top=TaskState.SUCCEEDED,
        left=TaskState.FAILED,
        right=TaskState.SUCCEEDED,
        alone=TaskState.SUCCEEDED,
    )
    assert (next_of(done), done.outcome) == (None, "failed")


@pytest.mark.parametrize("state", [TaskState.FAILED, TaskState.CANCELED])
def test_what_came_to_nothing_is_not_begun_again_unless_its_words_have_changed(
    state: TaskState,
) -> None:
    """D-R30"""
    alone = a_plan(a="")
    assert next_of(progress(alone, a=state)) is None
    changed = progress_of(alone, {"a": Known(task=a_task(state=state), is_changed=True)})
    assert (next_of(changed), changed.stands[0].state) == ("a", ItemState.READY)


@pytest.mark.parametrize("state", sorted(set(TaskState) - {TaskState.FAILED, TaskState.CANCELED}))
def test_what_is_done_or_under_way_stays_so_though_its_words_have_changed(state: TaskState) -> None:
    found = progress_of(a_plan(a=""), {"a": Known(task=a_task(state=state), is_changed=True)})
    assert found.stands[0].state.value == state.value
    assert found.stands[0].is_changed


def test_after_a_pause_nothing_else_is_next() -> None:
    """D-R6, D-R60"""
    assert next_of(progress(top=TaskState.PAUSED)) is None
    assert progress(top=TaskState.PAUSED).outcome == "paused"


def test_a_task_that_waits_holds_up_only_what_needs_it() -> None:
    assert next_of(progress(top=TaskState.WAITING)) == "alone"
    both = progress(top=TaskState.WAITING, alone=TaskState.SUCCEEDED)
    assert (next_of(both), both.outcome) == (None, "paused")


def test_a_review_stops_the_plan() -> None:
    known = {"top": Known(task=a_task(state=TaskState.WAITING), in_review=True)}
    assert progress_of(DIAMOND, known).next is None


def test_what_runs_is_seen_through_before_anything_else_starts() -> None:
    """D-R51"""
    assert next_of(progress(alone=TaskState.RUNNING)) == "alone"


def test_what_is_queued_starts_only_when_its_needs_are_done() -> None:
    """A need that was restarted is not done."""
    found = progress(top=TaskState.RUNNING, left=TaskState.QUEUED)
    assert next_of(found) == "top"
    assert not found.of("left").can_start
    assert (
        next_of(progress(top=TaskState.FAILED, left=TaskState.QUEUED, alone=TaskState.SUCCEEDED))
        is None
    )
    assert next_of(progress(top=TaskState.SUCCEEDED, left=TaskState.QUEUED)) == "left"


def test_a_task_that_was_forgotten_is_done() -> None:
    found = progress_of(a_plan(a="", b="a"), {"a": Known(task=None)})
    assert states_of(found) == {"a": "succeeded", "b": "ready"}


def test_of_any_graph_each_is_begun_after_its_needs_and_all_are() -> None:
    dice = random.Random(7)
    for _ in range(200):
        names = [f"t{number}" for number in range(dice.randrange(1, 12))]
        needs = {
            name: " ".join(dice.sample(names[:at], dice.randrange(min(at, 3) + 1)))
            for at, name in enumerate(names)
        }
        shuffled = list(needs.items())
        dice.shuffle(shuffled)
        plan = a_plan(**dict(shuffled))
        done: dict[str, TaskState] = {}
        while name := next_of(progress(plan, **done)):
            assert all(need in done for need in needs[name].split())
            done[name] = TaskState.SUCCEEDED
        assert set(done) == set(names)
        assert progress(plan, **done).outcome == "completed"
        assert len(in_order(plan)) == len(names)


def test_other_words_are_other_work() -> None:
    plan = a_plan(a="")
    item = replace(plan.items[0], options={"model": "x"})
    same = [item, replace(item, review=True, grace=1.0, id="b", line=9, needs=("c",))]
    others = [
        replace(item, command=("false",)),
        replace(item, runner="claude"),
        replace(item, prompt="do it"),
        replace(item, options={}),
        replace(item, pause_on_approval=True),
    ]
    assert len({words_of(plan, each) for each in same}) == 1
    assert (
        len(
            {words_of(plan, each) for each in [item, *others]}
            | {words_of(replace(plan, workspace="\udcff"), item)}
        )
        == 7
    )
