"""How a request to a model may fail."""

from adjourn.core.errors import AdjournError


class ModelStumbled(Exception):
    """The model did not answer this time; it may the next."""

    def __init__(self, sentence: str, *, retry_after: float | None = None) -> None:
        super().__init__(sentence)
        self.retry_after = retry_after


class ModelGaveUp(AdjournError):
    """The model will not answer as things are."""

    code = "model"
