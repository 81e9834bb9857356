"""Our runners keep the contract that `adjourn.testing` ships."""

from adjourn.core.policy.judgement import Effect
from adjourn.ports.runner import RunnerKind
from adjourn.ports.world import Runner
from adjourn.runners import OURS
from adjourn.runners.command import CommandRunner
from adjourn.runners.driver import DriverRunner
from adjourn.testing.runner_contract import ExitContract, RunnerContract


class TestExitOfACommand(ExitContract):
    def make_runner(self) -> Runner:
        return CommandRunner()


class TestExitOfTheAgent(ExitContract):
    def make_runner(self) -> Runner:
        return DriverRunner(effect=Effect.READ_ONLY, needs_session=False, makes_calls=False)


class TestExitOfAForeignAgent(ExitContract):
    def make_runner(self) -> Runner:
        return DriverRunner(effect=Effect.UNKNOWN, needs_session=True, makes_calls=True)


class TestAgent(RunnerContract):
    def make_kind(self) -> RunnerKind:
        return OURS["agent"]


class TestClaude(RunnerContract):
    def make_kind(self) -> RunnerKind:
        return OURS["claude"]


class TestCommand(RunnerContract):
    def make_kind(self) -> RunnerKind:
        return OURS["command"]


class TestAcp(RunnerContract):
    def make_kind(self) -> RunnerKind:
        return OURS["acp"]


class TestCodex(RunnerContract):
    def make_kind(self) -> RunnerKind:
        return OURS["codex"]
