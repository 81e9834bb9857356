"""Our runners keep the contract that `adjourn.testing` ships."""

from adjourn.core.policy.judgement import Effect
from adjourn.ports.world import Runner
from adjourn.runners.command import CommandRunner
from adjourn.runners.driver import DriverRunner
from adjourn.testing.runner_contract import RunnerContract


class TestCommandRunner(RunnerContract):
    def make_runner(self) -> Runner:
        return CommandRunner()


class TestAgentRunner(RunnerContract):
    def make_runner(self) -> Runner:
        return DriverRunner(effect=Effect.READ_ONLY, needs_session=False, makes_calls=False)


class TestForeignAgentRunner(RunnerContract):
    def make_runner(self) -> Runner:
        return DriverRunner(effect=Effect.UNKNOWN, needs_session=True, makes_calls=True)
