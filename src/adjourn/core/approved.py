"""What a process gets when its call was approved: the value, and the arguments to make the call with."""

from collections.abc import Mapping
from typing import Any, Self


class Approved(str):
    """The value of an approval, a text, that also carries the arguments that were approved.

    Where a person changed them, they are not those that were asked for: make the call with `arguments`, and with nothing else.
    """

    __slots__ = ("_arguments", "_is_read", "is_edited")

    is_edited: bool
    _arguments: Mapping[str, Any]
    _is_read: bool

    def __new__(cls, value: str, arguments: Mapping[str, Any], *, is_edited: bool) -> Self:
        """Make one."""
        made = super().__new__(cls, value)
        made._arguments = arguments
        made._is_read = False
        made.is_edited = is_edited
        return made

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments that were approved."""
        self._is_read = True
        return dict(self._arguments)

    @property
    def is_ignored(self) -> bool:
        """Whether a person changed the arguments and nobody looked at them."""
        return self.is_edited and not self._is_read
