"""What tells one receiver what happened, and how a `[[notify]]` table chooses one."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Protocol, TypeVar, runtime_checkable

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


class Buttons(msgspec.Struct, frozen=True, kw_only=True):
    """What a reader of a message may press: for this ask, and for these bytes of its call."""

    ask_id: str
    digest: str | None = None  # the beginning of that of the call; a question has none
    can_approve: bool = False
    can_reject: bool = False
    choices: tuple[str, ...] = ()  # of a question; rendered, in the order of the ask's own
    takes_text: bool = False  # an answer in words is wanted


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """What a messenger shows: one ask, or something that happened.

    All of its texts are rendered and without secrets. Nothing is left out of `text`: a messenger
    that has no room for all of it says so, and offers no approval of what it did not show.
    """

    id: str  # of the event; the same at every try
    subject: str  # one line, in adjourn's own words
    title: str  # one line: the command, the prompt or the question
    text: str
    show: str  # the command that shows all of it
    buttons: Buttons | None = None  # None if there is nothing to press, or no more
    link: str | None = None  # to a page where it can be settled


@runtime_checkable
class Messenger(Protocol):
    """Shows asks where people can press buttons. It owns no state: the store keeps the handles."""

    columns: int  # that a line of text may have where its readers are

    def send_message(self, message: Message) -> str | None:
        """Return a handle of what is shown now, or None if it cannot be changed later.

        Raise NotDelivered. It never takes longer than its timeout.
        """
        ...

    def update_message(self, handle: str, message: Message) -> None:
        """Show another text, with these buttons or none, in the place of what the handle names.

        What is gone there is nobody's loss. Raise NotDelivered.
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
    # Returns what a file holds, or a variable of the environment; raises BadTable
    read_token: Callable[[str, str], str] = lambda _file, _env: ""


class PreparedNotifier(msgspec.Struct, frozen=True, kw_only=True):
    """A notifier that is ready to be used."""

    notifier: Notifier | Messenger
    name: str  # what it is called if its table gives it no name
    shown: str  # where it sends to, for people, without secrets
    public_url: str | None = None  # where links to asks begin, if its messages have such links
    hears: str | None = None  # the name of the loop in `hearing` that takes presses of its buttons


class NotifierKind(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that adjourn knows about one kind of notifier.

    A `[[notify]]` table that has the key `name` gets a notifier of this kind.
    """

    name: str
    keys: Mapping[str, str]  # its own keys, `name` among them, and what each means
    factory: str  # makes a PreparedNotifier of its keys, as `module:attribute`
    takes_secret: bool = False
    extra: str | None = None  # of adjourn, that brings what it imports

    def prepare(self, values: Mapping[str, Any], settings: NotifierSettings) -> PreparedNotifier:
        """Return the notifier that a table's own keys describe, or raise BadTable."""
        module, _, attribute = self.factory.partition(":")
        try:
            factory = getattr(import_module(module), attribute)
        except ImportError as error:
            if self.extra is None:
                raise
            raise BadTable(
                f"{self.name} needs what is not installed: pip install 'adjourn[{self.extra}]'"
            ) from error
        prepared: PreparedNotifier = factory(values, settings)
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
