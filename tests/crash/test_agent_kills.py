"""Whatever call an agent, its supervisor or a tool's shim is killed at.

No tool runs twice, and no conversation is lost.
"""

import time
from collections.abc import Iterator

import pytest

from tests.agent.desk import command, finish, out_of_order, say, use
from tests.crash.agent import MODEL
from tests.crash.product import SHIM
from tests.crash.scenario import Point
from tests.crash.sweep import Sweep, report, share, sweeping
from tests.crash.tools import Tools
from tests.model.server import Model, playing

pytestmark = [pytest.mark.xdist_group("crash"), pytest.mark.timeout(3600)]

MODULE = "tests.crash.agent"
SHARE = 4  # of each victim, unless all points are wanted
EFFECT = "$EFFECT"  # the shell puts the recorder there
# Ungated there is no finish
TURNS = (use(command(EFFECT, "one")), use(command(EFFECT, "two")), finish(), say("Done."))
VICTIMS = (
    ("run_three_steps", ""),
    ("run_three_steps", "adjourn"),
    ("run_three_steps", SHIM),
    ("resume_approving", ""),
)


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    with playing(TURNS) as model:
        yield model


@pytest.fixture(scope="module")
def product(tools: Tools, model: Model) -> Iterator[Sweep]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(MODEL, model.url)
        with sweeping(tools, modules=[MODULE]) as servers:
            yield servers


def chosen(product: Sweep, name: str, role: str, *, sweep: str) -> list[Point]:
    points = product.points(f"{MODULE}:{name}", role=role, instance=1 if role == SHIM else 0)
    return points if sweep == "full" else share(points, of=SHARE, seed=1)


@pytest.mark.parametrize(("name", "role"), VICTIMS)
def test_a_kill_anywhere_runs_no_tool_twice_and_keeps_the_conversation(
    product: Sweep,
    model: Model,
    name: str,
    role: str,
    sweep: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    points = chosen(product, name, role, sweep=sweep)
    begun = time.monotonic()
    verdicts = product.play(points)
    killed = sum(verdict.killed for verdict in verdicts)
    with capsys.disabled():
        print(f"\n{name} {role}: {killed:,} kills in {time.monotonic() - begun:,.0f} s")
    assert report(verdicts) == ""
    assert killed > 0.5 * len(points), "the sweep missed"
    # Not what a kill tore apart
    conversations = [request.body["messages"] for request in model.requests if request.api]
    assert [problem for each in conversations if (problem := out_of_order(each))] == []
