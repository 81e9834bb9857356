"""Whatever call a worker, a taker of responses or a teller of news is killed at.

Nothing happens twice, nothing is lost.
"""

import time
from collections.abc import Iterator

import pytest

from tests.crash import supervision
from tests.crash.scenario import Point
from tests.crash.scenarios import Tale
from tests.crash.sweep import Sweep, report, share, sweeping
from tests.crash.tools import Tools

pytestmark = [pytest.mark.xdist_group("crash"), pytest.mark.timeout(3600)]

MODULE = "tests.crash.supervision"
SHARE = 30  # of each scenario, unless all of them are wanted
STEPS = (
    "work_once",
    "work_then_work",
    "work_then_look",
    "ask_by_files",
    "answer_by_file",
    "answer_by_file_to_worker",
    "tell_command",
)


@pytest.fixture(scope="module")
def product(tools: Tools) -> Iterator[Sweep]:
    with sweeping(tools, modules=[MODULE]) as servers:
        yield servers


def chosen(product: Sweep, name: str, *, sweep: str) -> list[Point]:
    points = product.points(f"{MODULE}:{name}")
    return points if sweep == "full" else share(points, of=SHARE, seed=1)


def test_every_scenario_is_swept() -> None:
    assert set(STEPS) == {
        name for name, value in vars(supervision).items() if isinstance(value, Tale)
    }


@pytest.mark.parametrize("name", STEPS)
def test_a_kill_anywhere_breaks_no_promise(
    product: Sweep, name: str, sweep: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """B-R30, C-R12, C-R13, C-R18.

    One resume for each response, one start for each approval, every event told.
    """
    points = chosen(product, name, sweep=sweep)
    begun = time.monotonic()
    verdicts = product.play(points)
    killed = sum(verdict.killed for verdict in verdicts)
    with capsys.disabled():
        print(f"\n{name}: {killed:,} kills in {time.monotonic() - begun:,.0f} s")
    assert report(verdicts) == ""
    assert killed > 0.9 * len(points), (
        "the sweep missed: the steps make fewer calls than they did when counted"
    )
