"""How a request to a model may fail."""

from adjourn.core.errors import AdjournError


class ModelStumbled(Exception):
    """The model did not answer this time; it may the next."""

    def __init__(self, sentence: str, *, retry_after: float | None = None) -> None:
        super().__init__(sentence)
        self.retry_after = retry_after


class ModelGaveUp(AdjournError):
    """The model does not answer as things are: its server is away, or overloaded."""

    code = "model"


class ModelRefused(ModelGaveUp):
    """The model's server would refuse the same request again: the key, the model, the request."""


class ContextFull(ModelRefused):
    """The conversation is longer than the model takes."""


class LimitReached(AdjournError):
    """The agent has done as much as it may: a person has to want more.

    A resume with `options` gets past the limit.
    """

    code = "limit"

    def __init__(self, why: str, *options: str) -> None:
        super().__init__(why)
        self.options = options
