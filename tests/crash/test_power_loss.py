"""Whenever the power fails.

What was acknowledged is there, and what started does not start again.
"""

from collections.abc import Iterator

import pytest

from tests.crash.powerloss import Loss, Outage
from tests.crash.sweep import Sweep, sweeping
from tests.crash.tools import Tools

pytestmark = [pytest.mark.xdist_group("crash"), pytest.mark.timeout(3600)]

MODULE = "tests.crash.stories"
STORIES = ("approved", "answered", "refused", "orphaned", "lost")
IMAGES = {"ci": 4_000, "full": 20_000}
PART = 400  # images of one recording


@pytest.fixture(scope="module")
def product(tools: Tools) -> Iterator[Sweep]:
    with sweeping(tools, modules=[MODULE]) as servers:
        yield servers


def outages(*stories: str, images: int) -> list[Outage]:
    parts = range(images // len(stories) // PART)
    return [
        Outage(story=f"{MODULE}:{story}", images=PART, seed=seed)
        for seed in parts
        for story in stories
    ]


def told(losses: list[Loss]) -> str:
    return "\n".join(
        f"{times}x {sentence} · {loss.outage.story}, {loss.shown[sentence]}"
        for loss in losses
        for sentence, times in loss.broken.items()
    )


def test_a_power_loss_at_any_moment_breaks_no_promise(
    product: Sweep, sweep: str, capsys: pytest.CaptureFixture[str]
) -> None:
    losses = product.suffer(outages(*STORIES, images=IMAGES[sweep]))
    images = sum(loss.images for loss in losses)
    pace = sum(loss.images / loss.seconds for loss in losses) / len(losses) * 60
    with capsys.disabled():
        print(f"\n{images:,} power-loss images, {pace:,.0f} a minute on each processor")
    assert told(losses) == ""
    assert images == IMAGES[sweep]


def test_a_store_that_does_not_sync_is_caught(product: Sweep) -> None:
    outage = Outage(story=f"{MODULE}:approved", images=PART, seed=1, syncs_count=False)
    broken = told(product.suffer([outage]))
    assert "the acknowledgement of approve is lost" in broken
    assert "a call that started is approved" in broken
