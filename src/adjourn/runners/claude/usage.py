"""What a run used, as the session's file tells it.

Also of a run that was stopped and has printed no result.
"""

from collections.abc import Iterator

import msgspec

from adjourn.runners.claude.protocol import TokenUsage


class Used(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens, and what they cost in US dollars, if the program reported it."""

    input_tokens: int = 0
    cached_input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None


class _OfModel(msgspec.Struct, rename="camel"):
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_input_tokens: int = 0
    cache_creation_input_tokens: int = 0


class _Account(msgspec.Struct, tag_field="type", tag="cost-state"):
    """What a whole session has used, subagents included.

    The program writes one whenever it exits normally.
    """

    cost: float = msgspec.field(name="totalCostUSD", default=0.0)
    models: dict[str, _OfModel] = msgspec.field(
        name="modelUsage", default_factory=dict[str, _OfModel]
    )

    @property
    def input_tokens(self) -> int:
        """All that was read."""
        return sum(_read(model) for model in self.models.values())

    @property
    def cached_input_tokens(self) -> int:
        """What of it a cache had."""
        return sum(model.cache_read_input_tokens for model in self.models.values())

    @property
    def output_tokens(self) -> int:
        """All that was said."""
        return sum(model.output_tokens for model in self.models.values())


class _SpokenMessage(msgspec.Struct):
    id: str = ""
    usage: TokenUsage = TokenUsage()


class _Spoken(msgspec.Struct, tag_field="type", tag="assistant"):
    message: _SpokenMessage


def used_since(before: bytes, after: bytes) -> Used:
    """Return what a session used from one moment of its file to a later one.

    Of both ways to count, the one that finds more is right: the program's own account forgets runs
    that were killed, the messages are only those of the main agent.
    """
    old, new = _accounts(before), _accounts(after)
    first, last = old[-1] if old else _Account(), new[-1] if new else _Account()
    spoken = _messages(after)
    for name in _messages(before):
        spoken.pop(name, None)
    return Used(
        input_tokens=max(
            last.input_tokens - first.input_tokens, sum(_read(usage) for usage in spoken.values())
        ),
        cached_input_tokens=max(
            last.cached_input_tokens - first.cached_input_tokens,
            sum(usage.cache_read_input_tokens for usage in spoken.values()),
        ),
        output_tokens=max(
            last.output_tokens - first.output_tokens,
            sum(usage.output_tokens for usage in spoken.values()),
        ),
        cost=last.cost - first.cost if len(new) > len(old) else None,
    )


def _read(usage: TokenUsage | _OfModel) -> int:
    return usage.input_tokens + usage.cache_read_input_tokens + usage.cache_creation_input_tokens


def _accounts(content: bytes) -> list[_Account]:
    return [
        each for each in _entries(content, b'"type":"cost-state"') if isinstance(each, _Account)
    ]


def _messages(content: bytes) -> dict[str, TokenUsage]:
    """Return what each message of the model used.

    It has several entries, and every one of them tells it.
    """
    spoken = [
        each.message
        for each in _entries(content, b'"type":"assistant"')
        if isinstance(each, _Spoken)
    ]
    return {message.id: message.usage for message in spoken}


def _entries(content: bytes, mark: bytes) -> Iterator[_Account | _Spoken]:
    for line in content.splitlines():
        if mark in line:
            try:
                yield msgspec.json.decode(line, type=_Account | _Spoken)
            except (msgspec.DecodeError, UnicodeDecodeError):
                continue  # cut off, or something else that only looks like it
