"""What tells one receiver what happened, and how a `[[notify]]` table chooses one."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Protocol, TypeVar

import msgspec

from adjourn.core.task import Milliseconds

Keys = TypeVar("Keys", bound=msgspec.Struct)


class NotDelivered(Exception):
    """A receiver did not take what it was told; the text says why."""


class Notifier(Protocol):
    """Tells one receiver what happened. It owns no state: what was told is kept in the store."""

    def send(self, notice_id: str, body: bytes, *, at: Milliseconds) -> None:
        """Return when the receiver has taken the document, or raise NotDelivered.

        It never takes longer than its timeout.
        """
        ...

    def hang_up(self) -> None:
        """Break off what is being sent, in whatever thread: nothing of it goes on."""
        ...


class BadTable(Exception):
    """A table of the config cannot be used; the text names its key and says why."""


class NotifierSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What every notifier gets from its table, beside its own keys."""

    timeout: float
    secret: Callable[[], bytes]  # returns the secret that the table names, or raises BadTable


class PreparedNotifier(msgspec.Struct, frozen=True, kw_only=True):
    """A notifier that is ready to be used."""

    notifier: Notifier
    name: str  # what it is called if its table gives it no name
    shown: str  # where it sends to, for people, without secrets


class NotifierKind(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that adjourn knows about one kind of notifier.

    A `[[notify]]` table that has the key `name` gets a notifier of this kind.
    """

    name: str
    keys: Mapping[str, str]  # its own keys, `name` among them, and what each means
    factory: str  # makes a PreparedNotifier of its keys, as `module:attribute`
    takes_secret: bool = False

    def prepare(self, values: Mapping[str, Any], settings: NotifierSettings) -> PreparedNotifier:
        """Return the notifier that a table's own keys describe, or raise BadTable."""
        module, _, attribute = self.factory.partition(":")
        prepared: PreparedNotifier = getattr(import_module(module), attribute)(values, settings)
        return prepared


def read_keys(values: Mapping[str, Any], keys: type[Keys]) -> Keys:
    """Return the keys of a table, or raise BadTable with the name of the one that is wrong."""
    try:
        return msgspec.convert(values, keys)
    except msgspec.ValidationError as error:
        text, _, path = str(error).partition(" - at `$")
        key = path.strip("`.").partition("[")[0]
        what = f"{text[:1].lower()}{text[1:]}"
        raise BadTable(f"`{key}`: {what}" if key else what) from error
