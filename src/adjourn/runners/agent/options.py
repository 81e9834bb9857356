"""What an agent's task was started with; kept with the task, so that every resume inherits it."""

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from adjourn.core.errors import Misuse
from adjourn.core.text.render import visible
from adjourn.runners.options import refuse_wrong

PROVIDERS = ("openai", "anthropic")
INSTRUCTIONS = (
    "You work in a directory on a person's machine, through the tools that you are given. Paths are relative to that directory. "
    "A person may have to approve a call; a call that was not approved gives TOOL_CALL_REJECTED, with the reason below it if "
    "there is one: do not try to get round it."
)
FINISH = " When the work is done, call finish. Words without a tool call reach a person, who will answer."


class OnText(StrEnum):
    """What words without a tool call are: the request for an answer, or the end."""

    PAUSE = "pause"
    COMPLETE = "complete"


class Server(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An MCP server: a program to start, or an address.

    `${NAME}` in it is taken from the environment when it is used.
    """

    command: str | None = None
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    url: str | None = None
    headers: dict[str, str] = {}


class Setup(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """The whole configuration of an agent, but for secrets: those stay in the environment."""

    model: str
    base_url: str | None = None
    key_variable: str | None = None  # which environment variable holds the key
    instructions: str = INSTRUCTIONS
    on_text: OnText = OnText.PAUSE
    max_steps: int = 100
    max_tokens: int | None = None
    timeout: float = 600.0  # seconds for one answer of the model
    tries: int = 5
    stream: bool = True
    clarify: bool = False
    output_limit: int = 30_000  # how many characters of a result the model gets
    servers: dict[str, Server] = {}
    functions: bool = True
    input_price: float | None = None  # US dollars for a million tokens
    output_price: float | None = None


def variable(key: str) -> str:
    """Name the environment variable that sets a key."""
    return f"ADJOURN_AGENT_{key.upper()}"


def convert(values: Mapping[str, object]) -> Setup:
    """Make a setup of values that may be texts still, or say which of them means nothing."""
    provider, _, name = str(values.get("model") or "").partition(":")
    if provider not in PROVIDERS or not name:
        known = " or ".join(f"{known}:NAME" for known in PROVIDERS)
        said = (
            f"the model {visible(str(values['model']))} is not one of {known}"
            if values.get("model")
            else "no model is named"
        )
        raise Misuse(said, way_out=f'adjourn run --model {PROVIDERS[0]}:NAME "PROMPT"')
    refuse_wrong(
        {name: value for name, value in values.items() if name != "servers"},
        Setup,
        way_out="adjourn config",
    )
    try:
        return msgspec.convert(values, Setup, strict=False)
    except msgspec.ValidationError as error:
        raise Misuse(f"the agent's settings: {error}", way_out="adjourn config") from error


def decoded(body: bytes) -> Setup:
    """Read a setup back."""
    return msgspec.json.decode(body, type=Setup)
