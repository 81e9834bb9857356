"""Puts notifiers together, from the config of the user: never from a project's."""

import os
import select
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import msgspec

from adjourn.controller.controller import Controller
from adjourn.core.documents import plain_json
from adjourn.core.errors import Misuse
from adjourn.core.redact import Redactor
from adjourn.core.task import Milliseconds
from adjourn.notifiers import choose_kind
from adjourn.ports.notifier import (
    BadTable,
    Message,
    Messenger,
    NotDelivered,
    Notifier,
    NotifierSettings,
)
from adjourn.settings.config import config_path, read_config
from adjourn.settings.notify import (
    approvers_in,
    key_of,
    proper_name,
    read_table,
    read_token,
    refuse_secret,
)
from adjourn.settings.people import read_people
from adjourn.supervision.ask_messages import AskMessages
from adjourn.supervision.notify_loop import NotifierStop, Sender, send_until
from adjourn.system.files import hold_lock_if_free, is_lock_held
from adjourn.system.machine import new_id, now
from adjourn.views.block import CommandWriter
from adjourn.views.notice import Occasion, sample_notice
from adjourn.wiring.controller import open_controller

LAST_ROUND = 5.0  # seconds for what is due when a worker has nothing left to do
HURRIED = 1.0  # the same when a worker is told to stop; what is not told then stays in the outbox
# A notifier that is new to a store gets the events of the last day, if it was configured then
_EARLIER: Milliseconds = 86_400_000
_NOT_AGAIN_BEFORE = 5.0  # seconds between two starts of the process that delivers
FOLLOW, HEAR = "--follow", "--hear"
_TO_BEGIN = 2.0  # seconds for one that has only just been started


class Configured(msgspec.Struct, frozen=True, kw_only=True):
    """A notifier of the user's, ready to be used."""

    name: str
    on: frozenset[Occasion]
    way: str
    notifier: Notifier | Messenger
    since: Milliseconds
    public_url: str | None = None
    hears: str | None = None


def configured() -> list[Configured]:
    """Return the notifiers of the user's config.

    What is wrong with it is said with its file, table and key.
    """
    config = read_config()
    return _notifiers(config.path, config.tables("notify"), since=config.since)


def _notifiers(path: str, tables: list[Any], *, since: Milliseconds) -> list[Configured]:
    found = [
        _notifier(path, number, table, since=since) for number, table in enumerate(tables, start=1)
    ]
    names = [each.name for each in found]
    for number, name in enumerate(names, start=1):
        if name in names[: number - 1]:
            raise _wrong(
                path,
                number,
                f"`name`: another is called {name} already; give each a name of its own",
            )
    return found


def _notifier(path: str, number: int, content: Any, *, since: Milliseconds) -> Configured:
    try:
        table, own = read_table(content)
        kind = choose_kind(own)
        if not kind.takes_secret:
            refuse_secret(table, kind=kind.name)
        directory = os.path.dirname(path)
        settings = NotifierSettings(
            timeout=table.timeout,
            secret=partial(key_of, table, directory=directory),
            read_token=partial(read_token, directory=directory),
        )
        prepared = kind.prepare(own, settings)
        name = proper_name(table.name or prepared.name)
    except BadTable as error:
        raise _wrong(path, number, str(error)) from error
    return Configured(
        name=name,
        on=frozenset(table.on),
        way=prepared.shown,
        notifier=prepared.notifier,
        since=since,
        public_url=prepared.public_url,
        hears=prepared.hears,
    )


def _wrong(path: str, number: int, what: str) -> Misuse:
    return Misuse(f"{path}: [[notify]] number {number}: {what}", way_out="adjourn notify --help")


# --- delivering -----------------------------------------------------------------------------------


def open_sender(
    each: Configured, root: str, *, commands: CommandWriter, redactor: Redactor
) -> Sender:
    """Return what sends a notifier the news of a store, with a connection of its own."""
    controller = open_controller(root)
    receiver = each.notifier
    return Sender(
        controller,
        open_messages(each, controller, commands=commands, redactor=redactor)
        if isinstance(receiver, Messenger)
        else receiver,
        name=each.name,
        on=each.on,
        root=root,
        clock=now,
        commands=commands,
        redactor=redactor,
        since=max(each.since, now() - _EARLIER),
        also_called=read_people().reached_by(each.name),
    )


def open_messages(
    each: Configured, controller: Controller, *, commands: CommandWriter, redactor: Redactor
) -> AskMessages:
    """Return what shows the asks of a store to a messenger."""
    if not isinstance(each.notifier, Messenger):
        raise TypeError(f"{each.name} is no messenger")
    config = read_config()
    people = {
        principal: person.name
        for person in read_people(config).people
        for principal in person.principals
    }
    return AskMessages(
        controller,
        each.notifier,
        name=each.name,
        clock=now,
        commands=commands,
        redactor=redactor,
        names=people | approvers_in(config),
        public_url=each.public_url,
    )


def send_sample(each: Configured) -> str | None:
    """Send a notifier a notice of no task; return why it was not delivered, or None."""
    name = f"evt_test_{new_id()}"
    sample = sample_notice(name, now=now())
    body = plain_json(msgspec.json.encode(sample).decode()).encode()
    try:
        if isinstance(each.notifier, Messenger):
            message = Message(
                id=name,
                subject=sample.text,
                title="adjourn",
                text=sample.text,
                show="adjourn notify",
            )
            each.notifier.send_message(message)
        else:
            each.notifier.send(name, body, at=now())
    except NotDelivered as refusal:
        return str(refusal)
    return None


def send_until_closed(
    descriptor: int,
    *,
    root: str,
    commands: CommandWriter,
    redactor: Redactor,
    log: Callable[..., None],
) -> None:
    """Send all that happens until the other end is closed, or the config changes."""
    only = hold_lock_if_free(_presence(root))
    if only is None:
        return  # another worker's process delivers
    seen, notifiers, stop = config_signature(), configured(), NotifierStop()

    def send(each: Configured) -> None:
        try:
            sender = open_sender(each, root, commands=commands, redactor=redactor)
            send_until(stop, sender, log=log)
        except Exception as error:  # noqa: BLE001 -- the thread's last edge; it is started again
            log("notify_error", notifier=each.name, error=f"{type(error).__name__}: {error}")

    threads = [threading.Thread(target=send, args=(each,), daemon=True) for each in notifiers]
    for thread in threads:
        thread.start()
    seconds = wait_until_closed(descriptor, threads=threads, seen=seen)
    stop.within(seconds)
    deadline = time.monotonic() + seconds
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    for each in notifiers:
        each.notifier.hang_up()
    only.close()


def wait_until_closed(
    descriptor: int, *, threads: list[threading.Thread], seen: tuple[int, ...] | None
) -> float:
    """Wait until nobody needs us any more, and return the seconds for the last round.

    A thread that died of a defect is started again, too.
    """
    said = b""
    while config_signature() == seen and all(thread.is_alive() for thread in threads):
        ready, _, _ = select.select([descriptor], [], [], _NOT_AGAIN_BEFORE)
        if ready:
            heard = os.read(descriptor, 64)
            said += heard
            if not heard:
                break
    return float(said) if said else LAST_ROUND


def _presence(root: str) -> str:
    return os.path.join(root, "notify.lock")


def config_signature() -> tuple[int, ...] | None:
    """Return what changes whenever the config does."""
    try:
        found = os.stat(config_path())
    except OSError:
        return None
    return (found.st_ino, found.st_mtime_ns, found.st_size)


class NotifyProcess:
    """A process beside a worker that delivers, or one that listens (`--hear`) for what is pressed.

    It does not run while nobody wants to be told, or no notifier has buttons.
    """

    def __init__(
        self,
        root: str,
        *,
        log: Callable[..., None],
        log_format: str = "text",
        flag: str = FOLLOW,
    ) -> None:
        self._root = root
        self._flag = flag
        self._log_format = log_format
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        self._not_before = 0.0
        self._useless: tuple[int, ...] | None = None

    def start_if_needed(self) -> None:
        """Start the process if there is need for one and none is there; never wait for it."""
        moment = time.monotonic()
        if moment < self._not_before or (self._process and self._process.poll() is None):
            return
        self._not_before = moment + _NOT_AGAIN_BEFORE
        seen = config_signature()
        is_there = self._flag == FOLLOW and is_lock_held(_presence(self._root))
        if seen is None or seen == self._useless or is_there:
            return
        if self._is_of_use():
            self._start()
        else:
            self._useless = seen

    def _is_of_use(self) -> bool:
        try:
            return any(self._flag == FOLLOW or each.hears for each in configured())
        except Misuse as error:
            self._log("notify_error", error=error.sentence)
            return False

    def _start(self) -> None:
        # Only where somebody wants to be told
        from adjourn.wiring.own_program import own_environment, own_python

        command = own_python(
            "notify", self._flag, "--output", self._log_format, "--store", self._root
        )
        try:
            self._process = subprocess.Popen(
                command,
                env=own_environment(os.environ),
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            self._log("notify_error", error=f"what delivers could not be started: {error.strerror}")

    def close(self, *, within: float) -> None:
        """Let it deliver what is due within so many seconds, and leave."""
        if self._process is None:
            return
        if self._process.stdin:
            with suppress(OSError):  # it has left
                self._process.stdin.write(f"{within}".encode())
                self._process.stdin.close()
        try:
            self._process.wait(within + _TO_BEGIN)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
