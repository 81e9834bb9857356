"""What every runner promises: the contracts of `RunnerKind` and of `Runner`, as tests."""

import os
from itertools import product
from pathlib import Path

import pytest
from msgspec.structs import replace

from adjourn.core.errors import Misuse
from adjourn.core.outcome import Completed, Exit, Failed, Interrupted, Standing
from adjourn.core.policy.judgement import Effect
from adjourn.ports.runner import NO_TABLE, RunnerKind, load
from adjourn.ports.world import Runner

EXITS = [
    *(Exit(code=code) for code in (0, 1, 2, 10, 74, 75, 90, 127, 130, 255)),
    *(Exit(signal=number) for number in (1, 2, 6, 9, 15)),
]
STANDINGS = [
    Standing(open_asks=asks, settled_asks=settled, told=told, resumable=resumable)
    for asks, settled, told, resumable in product(
        ((), ("ask-1",)), (False, True), (None, "so far"), (False, True)
    )
]
EVERY_EXIT = pytest.mark.parametrize("exit_", EXITS, ids=repr)


class RunnerContract:
    """The tests that a kind of runner has to pass.

    Derive a class whose name begins with `Test` and return the kind from `make_kind`.
    """

    def make_kind(self) -> RunnerKind:
        """Return what the entry point of the group `adjourn.runners` names."""
        raise NotImplementedError

    @pytest.fixture
    def kind(self) -> RunnerKind:
        """Return the kind."""
        return self.make_kind()

    def test_its_name_can_be_typed_and_starts_its_driver(self, kind: RunnerKind) -> None:
        assert kind.name.replace("-", "").isalnum()
        assert kind.argv == ("adjourn", "_drive", kind.name)

    @pytest.mark.parametrize("part", ["driver", "options", "session_check", "doctor", "exits"])
    def test_every_part_that_it_names_can_be_imported(self, kind: RunnerKind, part: str) -> None:
        name = getattr(kind, part)
        assert not name or callable(load(name))

    @pytest.mark.parametrize("method", ["start", "resume", "interrupt", "kill"])
    def test_its_driver_has_the_methods_of_the_port(self, kind: RunnerKind, method: str) -> None:
        driver = load(kind.driver) if kind.driver else None  # a plain command has none
        assert not isinstance(driver, type) or callable(getattr(driver, method, None))

    def test_an_option_that_it_does_not_know_is_refused(self, kind: RunnerKind) -> None:
        if kind.options:
            with pytest.raises(Misuse) as refusal:
                kind.read_options({"no-such-option": "x"}, {"PATH": os.defpath}, NO_TABLE)
            assert refusal.value.way_out

    def test_where_its_program_is_missing_the_doctor_says_none(
        self, kind: RunnerKind, tmp_path: Path
    ) -> None:
        if kind.doctor:
            nowhere = {"PATH": str(tmp_path)}
            assert kind.diagnose(nowhere, workspace=str(tmp_path)) is None


class ExitContract:
    """The tests that the meaning of exit codes has to pass.

    Derive a class whose name begins with `Test` and return the runner from `make_runner`.
    """

    def make_runner(self) -> Runner:
        """Return the runner."""
        raise NotImplementedError

    @pytest.fixture
    def runner(self) -> Runner:
        """Return the runner."""
        return self.make_runner()

    def test_it_says_what_a_second_start_would_do(self, runner: Runner) -> None:
        assert runner.effect in Effect
        assert isinstance(runner.needs_session, bool)
        assert isinstance(runner.makes_calls, bool)

    @EVERY_EXIT
    def test_an_exit_means_the_same_every_time(self, runner: Runner, exit_: Exit) -> None:
        for standing in STANDINGS:
            assert runner.meaning(exit_, standing) == runner.meaning(exit_, standing)

    @EVERY_EXIT
    def test_a_run_that_failed_or_still_asks_is_not_complete(
        self, runner: Runner, exit_: Exit
    ) -> None:
        for standing in STANDINGS:
            if standing.open_asks or exit_.code != 0:
                assert not isinstance(runner.meaning(exit_, standing), Completed), standing

    @EVERY_EXIT
    def test_a_failure_has_a_reason(self, runner: Runner, exit_: Exit) -> None:
        for standing in STANDINGS:
            outcome = runner.meaning(exit_, standing)
            assert not isinstance(outcome, Failed) or outcome.reason, standing

    def test_a_clean_exit_with_nothing_open_is_complete(self, runner: Runner) -> None:
        assert isinstance(runner.meaning(Exit(code=0), Standing()), Completed)

    @EVERY_EXIT
    def test_a_run_that_was_told_to_stop_is_interrupted(self, runner: Runner, exit_: Exit) -> None:
        for standing in STANDINGS:
            outcome = runner.meaning(replace(exit_, interrupted=True), standing)
            assert isinstance(outcome, Interrupted), standing

    @pytest.mark.parametrize("exit_", [Exit(code=0), Exit(code=1), Exit(signal=9)], ids=repr)
    def test_what_the_supervisor_found_wrong_fails_the_run(
        self, runner: Runner, exit_: Exit
    ) -> None:
        why = "it took too long and was stopped"
        for standing in STANDINGS:
            assert runner.meaning(replace(exit_, error=why), standing) == Failed(why), standing
