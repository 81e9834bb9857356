"""How a task's Codex is started.

Kept with the task, so that every resume starts it the same way.
"""

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from adjourn.core.errors import Misuse
from adjourn.ports.runner import NO_TABLE, ConfigTable
from adjourn.runners.options import refuse_wrong, split

PROGRAM = "codex"
VARIABLE = "ADJOURN_CODEX"  # says which program it is
SILENCE = 900.0  # seconds; a model may think for minutes
RETRIES = 8
WAIT = 60.0  # seconds


class Sandbox(StrEnum):
    """What Codex lets commands touch."""

    READ_ONLY = "read-only"
    WORKSPACE_WRITE = "workspace-write"
    FULL_ACCESS = "danger-full-access"


class OnApprove(StrEnum):
    """How an approved call comes to run.

    The model repeats it, or adjourn has it executed and hands in the output.
    """

    REPEAT = "repeat"
    EXECUTE = "execute"


class Interface(StrEnum):
    """How Codex is spoken to.

    By its app-server if it has one, else by `codex exec`; or by `codex exec` alone.
    """

    APP_SERVER = "app-server"
    EXEC = "exec"


class CodexSetup(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """How to start Codex for one task."""

    program: str = PROGRAM
    arguments: tuple[str, ...] = ()
    sandbox: Sandbox = Sandbox.WORKSPACE_WRITE
    model: str | None = None
    on_approve: OnApprove = OnApprove.EXECUTE
    way: Interface = Interface.APP_SERVER
    silence: float = SILENCE  # seconds without a word after which it counts as stuck
    retries: int = RETRIES  # how often in a row it may lose the network
    wait: float = WAIT  # seconds that what still runs may take to end when a person is needed
    trust_project: bool = False  # whether what the workspace's own .codex says counts


_NAMES = {name.replace("_", "-"): name for name in CodexSetup.__struct_fields__}
_TAKEN = frozenset({"-c", "--config", "--enable", "--disable"})
# What the gate stands on
_OURS = frozenset({"approval_policy", "approvals_reviewer", "hooks", "projects", "sandbox_mode"})


def setup_of(body: bytes) -> CodexSetup:
    """Read a setup as it was kept."""
    return msgspec.json.decode(body or b"{}", type=CodexSetup)


def read_options(
    given: Mapping[str, str], environment: Mapping[str, str], _: ConfigTable = NO_TABLE
) -> CodexSetup:
    """Return the setup that options ask for. The environment may name the program."""
    named = {_NAMES.get(name, name): value for name, value in given.items()}
    if unknown := sorted(named.keys() - set(CodexSetup.__struct_fields__)):
        raise Misuse(
            f"Codex has no option {unknown[0]}", way_out=f"--option with one of {', '.join(_NAMES)}"
        )
    values: dict[str, object] = {"program": environment.get(VARIABLE) or PROGRAM, **named}
    values["arguments"] = split(named.get("arguments", ""))
    refuse_wrong(values, CodexSetup, way_out="adjourn run --help", dash="-")
    setup = msgspec.convert(values, CodexSetup, strict=False)
    _require_fitting(setup)
    return setup


def _require_fitting(setup: CodexSetup) -> None:
    """Refuse what would take the gate away, choose another thread, or never give up."""
    if setup.silence <= 0 or min(setup.retries, setup.wait) < 0:
        raise Misuse(
            "Codex needs some silence, and nothing else that is negative",
            way_out=f"--option silence={SILENCE:g}",
        )
    words = iter(setup.arguments)
    for word in words:
        name, _, value = word.partition("=")
        if name not in _TAKEN:
            raise Misuse(
                f"Codex cannot be given {word} here", way_out=f"only {', '.join(sorted(_TAKEN))}"
            )
        setting = value or next(words, "")
        if setting.partition("=")[0].strip().partition(".")[0] in _OURS:
            raise Misuse(
                f"Codex cannot be given {setting} here: adjourn holds its gate",
                way_out="leave it out",
            )
