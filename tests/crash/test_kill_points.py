"""Whatever call the supervisor or a command is killed at.

No call starts twice, no decision is lost, no store breaks.
"""

import time
from collections.abc import Iterator

import pytest

from tests.crash import scenarios
from tests.crash.scenario import Point
from tests.crash.sweep import Sweep, report, share, sweeping
from tests.crash.tools import Tools

pytestmark = [pytest.mark.xdist_group("crash"), pytest.mark.timeout(3600)]

MODULE = "tests.crash.scenarios"
POINTS = {"ci": 2_000, "full": 10_000}

STEPS = (
    "run_first", "run_next", "run_failing", "run_missing", "run_pausing", "run_and_leave", "run_all_die",
    "approve", "approve_json", "approve_first", "approve_last", "reject", "cancel", "cancel_running", "pause_running",
    "resume", "resume_then_look", "resume_all_die", "resume_approving", "resume_and_leave",
    "restart", "settle_it_ran", "settle_it_did_not", "recover", "backup", "prune",
)  # fmt: skip

# Their scripts start commands of adjourn, each a Python of its own: they get a tenth of the points,
# and cost as much as the rest.
SLOW_STEPS = ("run_asking", "run_nested", "answer", "resume_answered", "recover_asking")
INNER_STEPS = ("run_asking", "run_nested")  # not the step is killed, but the command inside


@pytest.fixture(scope="module")
def product(tools: Tools) -> Iterator[Sweep]:
    with sweeping(tools, modules=[MODULE]) as servers:
        yield servers


def points(product: Sweep, *, of: int) -> list[Point]:
    quick = [point for name in STEPS for point in product.points(f"{MODULE}:{name}")]
    slow = [point for name in SLOW_STEPS for point in product.points(f"{MODULE}:{name}")]
    inner = [
        point
        for name in INNER_STEPS
        for point in product.points(f"{MODULE}:{name}", role="adjourn")
    ]
    return share(quick, of=of * 9 // 10, seed=1) + share(slow + inner, of=of // 10, seed=1)


def test_every_scenario_is_swept() -> None:
    tales = {name for name, value in vars(scenarios).items() if isinstance(value, scenarios.Tale)}
    apart = {name for name in tales if name.startswith(("shim_", "tool_"))} | {
        "hasty",
        "hasty_without_proof",
        "boastful",
    }
    assert {*STEPS, *SLOW_STEPS} == tales - apart


def test_a_kill_anywhere_breaks_no_promise(
    product: Sweep, sweep: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """C-R13: what was reported is saved, what was approved runs once."""
    chosen = points(product, of=POINTS[sweep])
    begun = time.monotonic()
    verdicts = product.play(chosen)
    killed = sum(verdict.killed for verdict in verdicts)
    with capsys.disabled():
        print(
            f"\n{killed:,} kills of supervisor and command at {killed / (time.monotonic() - begun) * 60:,.0f} a minute"
        )
    assert report(verdicts) == ""
    assert killed > 0.95 * len(chosen), (
        "the sweep missed: the steps make fewer calls than they did when counted"
    )


def test_a_supervisor_that_opens_the_gate_too_early_is_caught(product: Sweep) -> None:
    chosen = share(product.points(f"{MODULE}:hasty_without_proof"), of=120, seed=1)
    found = report(product.play(chosen))
    assert "a call started 2 times" in found or "a call is withdrawn that did start" in found


def test_even_then_no_call_starts_twice_where_its_result_is_kept(product: Sweep) -> None:
    """The result that lies in the run's directory is believed, though the store knows of no start."""
    chosen = share(product.points(f"{MODULE}:hasty"), of=40, seed=1)
    assert "started 2 times" not in report(product.play(chosen))


def test_an_acknowledgement_that_comes_too_early_is_caught(product: Sweep) -> None:
    chosen = share(product.points(f"{MODULE}:boastful"), of=40, seed=1)
    assert "it said approved, and the ask is pending" in report(product.play(chosen))
