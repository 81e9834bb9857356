"""Whatever call the shim, the fork server or the tool is killed at.

No call starts twice, and uncertain means uncertain.
"""

import time
from collections.abc import Iterator

import pytest

from tests.crash.product import SHIM
from tests.crash.scenario import Point
from tests.crash.sweep import Sweep, report, share, sweeping
from tests.crash.tools import Tools

pytestmark = [pytest.mark.xdist_group("crash"), pytest.mark.timeout(3600)]

MODULE = "tests.crash.scenarios"
KILLS = {"ci": 200, "full": 1_000}
VICTIMS = (
    ("shim_runs", SHIM),
    ("shim_pauses", SHIM),
    ("shim_resumes", SHIM),
    ("tool_runs", SHIM),
    ("shim_runs", "adjourn-forks"),
    ("shim_resumes", "adjourn-forks"),
    ("tool_runs", "sh"),
)


@pytest.fixture(scope="module")
def product(tools: Tools) -> Iterator[Sweep]:
    with sweeping(tools, modules=[MODULE]) as servers:
        yield servers


def every_point(product: Sweep) -> list[Point]:
    return [
        point for name, role in VICTIMS for point in product.points(f"{MODULE}:{name}", role=role)
    ]


def test_a_killed_shim_or_tool_breaks_no_promise(
    product: Sweep, sweep: str, capsys: pytest.CaptureFixture[str]
) -> None:
    points = share(every_point(product), of=KILLS[sweep], seed=1)
    begun = time.monotonic()
    verdicts = product.play(points)
    killed = sum(verdict.killed for verdict in verdicts)
    with capsys.disabled():
        print(
            f"\n{killed:,} kills of shim and tool at {killed / (time.monotonic() - begun) * 60:,.0f} a minute"
        )
    assert report(verdicts) == ""
    assert killed > 0.95 * len(points), (
        "the sweep missed: the shims make fewer calls than they did when counted"
    )
