"""A surface of its own, without the command line: it shows a task as text and as HTML."""

import subprocess
import sys

SURFACE = """
import html
import sys

from adjourn.core.plan.plan import Item, Plan, progress_of
from adjourn.core.scene import Scene
from adjourn.core.states import TaskState
from adjourn.core.text.render import Cut
from adjourn.testing.values import NOON, a_call, a_run, a_task, an_approval
from adjourn.views.block import to_text, wrap
from adjourn.views.call import call_blocks
from adjourn.views.plan import graph_block, plan_blocks
from adjourn.views.task import task_blocks


def press(*words):
    "A surface without a shell has buttons instead of commands."
    return f"[{' '.join(words)}]"


cut = Cut(limit=2_000, rest="[more]")
scene = Scene(
    task=a_task(state=TaskState.WAITING, runs=1),
    run=a_run(checkpoint_id="cp"),
    asks=(an_approval(manifest="<b>trust me</b>"),),
    calls={1: a_call()},
)
items = (
    Item(id="build", line=1, runner="command", command=("make",)),
    Item(id="ship", line=5, runner="command", needs=("build",)),
)
plan = progress_of(Plan(path="/srv/plan.toml", workspace="/srv", items=items), {})
blocks = [
    *call_blocks(scene.calls[1], cut=cut),
    *task_blocks(scene, press, now=NOON, cut=cut),
    graph_block(plan, columns=60),
    *plan_blocks(plan, press, named="plan.toml"),
]
print(to_text(blocks, 60))
for row in wrap(blocks, 60):
    spans = (f'<span class="{span.role}">{html.escape(span.text)}</span>' for span in row.spans)
    print(f"<div>{''.join(spans)}</div>")
print([name for name in sys.modules if name.startswith(("adjourn.cli", "click"))])
"""


def test_a_surface_shows_a_call_a_task_and_a_plan_without_the_command_line() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SURFACE], capture_output=True, text=True, check=True
    )
    *shown, modules = done.stdout.splitlines()
    text = [row for row in shown if not row.startswith("<div>")]
    page = [row for row in shown if row.startswith("<div>")]
    assert modules == "[]"
    assert "    $ ./deploy.sh" in text
    assert "Paused: 1 thing to settle  (task task-a)" in text
    assert "Approve with: [approve ask-a --resume]" in text
    assert "  agent │ <b>trust me</b>" in text
    assert any(row.startswith("└─ ship") for row in text)
    assert len(page) == len(text)
    assert any('<span class="waiting">approval</span>' in row for row in page)
    assert any('<span class="agent_words">agent │ &lt;b&gt;' in row for row in page)
    assert any('<span class="code">$ ./deploy.sh</span>' in row for row in page)
