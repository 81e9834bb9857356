"""The same decision on every surface: the same events, the same state, the same effects."""

from collections.abc import Callable
from contextlib import closing

import pytest

from tests.e2e.shell import Shell
from tests.surfaces.drivers import CommandLine, Mcp, Tui
from tests.surfaces.scenarios import SCENARIOS

DRIVERS: dict[str, Callable[[Shell], CommandLine | Mcp | Tui]] = {
    "cli": CommandLine,
    "mcp": Mcp,
    "tui": Tui,
}


@pytest.mark.serial
@pytest.mark.parametrize("surface", DRIVERS)
def test_a_scenario_has_the_same_end_on_every_surface(shell: Shell, surface: str) -> None:
    """A-R6, D-R55, D-R57, D-R66: one controller beneath them all."""
    with DRIVERS[surface](shell) as driver:
        for name, scenario in SCENARIOS.items():
            effects = shell.place / "effects"
            effects.unlink(missing_ok=True)
            task = driver.start(scenario.command, is_gated=scenario.is_gated)
            for method, *more in scenario.does:
                getattr(driver, method)(task, *more)
            assert shell.state(task) == scenario.state, name
            assert tuple(shell.lines("effects")) == scenario.effects, name
            with closing(shell.open_store()) as store, store.read() as view:
                kinds = [event.kind for event in view.events(task)]
            assert tuple(kinds) == scenario.events, (surface, name)
