"""How the agent asks a model over real HTTP, and what it makes of servers that falter."""

import contextlib
import socket
from collections.abc import Callable

import msgspec
import pytest

from adjourn.core.agent.transcript import (
    Assistant,
    Message,
    Tally,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
    User,
    with_unique_ids,
)
from adjourn.runners.agent.model_errors import ModelGaveUp
from adjourn.runners.agent.options import AgentSetup
from adjourn.runners.agent.retry import RetryingModel
from adjourn.runners.agent.tools.read import LOOKING
from tests.model.script import Fault, ToolUse, Turn
from tests.model.server import Model, playing

HELLO: list[Message] = [User(text="hello")]
Ask = Callable[..., Assistant]


class Asked:
    """One model, and what was heard of it."""

    def __init__(self, setup: AgentSetup) -> None:
        self.heard: list[str] = []
        self.told: list[str] = []
        self.waits: list[float] = []
        self._asking = RetryingModel(
            setup,
            "Be brief.",
            hear=self.heard.append,
            tell=self.told.append,
            sleep=self.waits.append,
        )

    def __call__(self, messages: list[Message] = HELLO) -> Assistant:
        with contextlib.closing(self._asking):
            return self._asking(messages, LOOKING)


def setup_for(model: Model, api: str, *, stream: bool = True) -> AgentSetup:
    base = model.openai if api == "openai" else model.url
    return AgentSetup(
        model=f"{api}:scripted",
        base_url=base,
        stream=stream,
        input_price=2.0,
        output_price=10.0,
        timeout=10,
    )


apis = pytest.mark.parametrize("api", ["openai", "anthropic"])
streams = pytest.mark.parametrize("stream", [True, False])


@apis
@streams
def test_an_answer_is_the_same_whoever_gives_it_and_however_it_comes(
    api: str, *, stream: bool
) -> None:
    calls = (
        ToolUse(name="read_file", arguments={"path": "a"}),
        ToolUse(name="read_file", arguments="not json"),
    )
    with playing([Turn(text="Let me look at it.", calls=calls)]) as model:
        asked = Asked(setup_for(model, api, stream=stream))
        answer = asked()
    assert answer == Assistant(
        text="Let me look at it.",
        tool_calls=(
            ToolCall(id="call_1_1", name="read_file", arguments={"path": "a"}),
            ToolCall(id="call_1_2", name="read_file", arguments="not json"),
        ),
        usage=Usage(input=100, output=10, cost="0.0003"),
        model="scripted",
    )
    assert "".join(asked.heard) == "Let me look at it.\n"


@apis
def test_a_whole_conversation_goes_over_in_the_order_of_the_api(api: str) -> None:  # A-R18 A-R19
    conversation: list[Message] = [
        User(text="hello"),
        Assistant(
            text="Looking.",
            tool_calls=(
                ToolCall(id="a", name="read_file"),
                ToolCall(id="b", name="read_file", arguments="{"),
            ),
        ),
        ToolResult(tool_call_id="a", name="read_file", text="one"),
        ToolResult(tool_call_id="b", name="read_file", text="TOOL_CALL_REJECTED", failed=True),
    ]
    with playing([Turn(), Turn(text="Done.")]) as model:
        Asked(setup_for(model, api))(conversation)
    sent = model.requests[0].body["messages"]
    if api == "openai":
        assert [message["role"] for message in sent] == [
            "system",
            "user",
            "assistant",
            "tool",
            "tool",
        ]
        assert [message["content"] for message in sent[3:]] == ["one", "TOOL_CALL_REJECTED"]
        assert [message["tool_call_id"] for message in sent[3:]] == ["a", "b"]
    else:
        assert [message["role"] for message in sent] == ["user", "assistant", "user"]
        blocks = [
            (block["tool_use_id"], block["content"][0]["text"]) for block in sent[2]["content"]
        ]
        assert blocks == [("a", "one"), ("b", "TOOL_CALL_REJECTED")]
        assert model.requests[0].body["system"]


def test_thoughts_are_kept_and_given_back() -> None:
    message = Assistant(
        thinking=(Thinking(text="hm", signature="sealed", provider="anthropic"),),
        tool_calls=(ToolCall(id="a", name="x"),),
    )
    with playing([Turn(), Turn(text="Done.")]) as model:
        Asked(setup_for(model, "anthropic"))(
            [*HELLO, message, ToolResult(tool_call_id="a", name="x", text="y")]
        )
    assert model.requests[0].body["messages"][1]["content"][0] == {
        "type": "thinking",
        "thinking": "hm",
        "signature": "sealed",
    }


@apis
@streams
@pytest.mark.parametrize(
    "fault",
    [
        Fault(status=500),
        Fault(status=429, retry_after="7"),
        Fault(status=503),
        Fault(status=529),
        Fault(drop_after=3),
        Fault(garbage="<html>proxy error</html>"),
        Fault(garbage='{"choices": 5}'),
    ],
    ids=["500", "429", "503", "529", "dropped", "html", "other-json"],
)
def test_what_may_pass_is_asked_again(api: str, fault: Fault, *, stream: bool) -> None:
    with playing([Turn(text="At last.", faults=(fault, fault))]) as model:
        asked = Asked(setup_for(model, api, stream=stream))
        assert asked().text == "At last."
    assert asked.waits == ([7.0, 7.0] if fault.retry_after else [1.0, 2.0])
    assert len(asked.told) == 2
    assert len(model.requests) == 3  # nobody else retries in between


@apis
def test_an_empty_answer_is_asked_again(api: str) -> None:
    with (
        playing([Turn()]) as model,
        pytest.raises(ModelGaveUp, match=r"the model's answer is empty \(tried 5 times\)"),
    ):
        Asked(setup_for(model, api))()
    assert len(model.requests) == 5


@apis
def test_a_wrong_key_is_told_at_once(api: str) -> None:
    with playing([Turn(text="no", faults=(Fault(status=401),))]) as model:
        asked = Asked(setup_for(model, api))
        with pytest.raises(ModelGaveUp, match="the model's server says 401: scripted fault 401"):
            asked()
    assert asked.waits == []


@apis
def test_a_server_that_wants_an_hour_is_not_waited_for(api: str) -> None:
    turn = Turn(text="no", faults=(Fault(status=429, retry_after="3600"),))
    with (
        playing([turn]) as model,
        pytest.raises(ModelGaveUp, match="it wants to be asked again in 3600 s"),
    ):
        Asked(setup_for(model, api))()


@apis
def test_a_server_that_is_not_there_is_given_up_on(api: str) -> None:
    with contextlib.closing(socket.socket()) as unused:
        unused.bind(("127.0.0.1", 0))
        setup = AgentSetup(
            model=f"{api}:scripted", base_url=f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
        )
        asked = Asked(setup)
        with pytest.raises(
            ModelGaveUp, match=r"the model's server cannot be reached: .* \(tried 5 times\)"
        ):
            asked()
    assert asked.waits == [1.0, 2.0, 4.0, 8.0]


def test_a_key_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.raises(ModelGaveUp, match="ANTHROPIC_API_KEY is not set"):
        Asked(AgentSetup(model="anthropic:claude-sonnet-4-5"))()


def test_ids_that_a_model_uses_twice_are_told_apart() -> None:
    earlier = Tally([Assistant(tool_calls=(ToolCall(id="call_0", name="x"),))]).names
    calls = tuple(
        ToolCall(id=name, name="x") for name in ("call_0", "call_0", "", "not tame\n", "fine")
    )
    answer = with_unique_ids(Assistant(tool_calls=calls), earlier)
    assert [call.id for call in answer.tool_calls] == [
        "call_0_2",
        "call_0_3",
        "call",
        "call_5",
        "fine",
    ]


def test_the_price_of_a_known_model_is_known() -> None:
    with playing([Turn(text="Hi.")]) as model:
        setup = msgspec.structs.replace(
            setup_for(model, "openai"), input_price=None, output_price=None
        )
        assert Asked(setup)().usage.cost is None  # a server of one's own
