"""What every verb has: the store it works on, and how it speaks."""

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from typing import Any, TextIO

from adjourn.cli.terminal import CUSTOMARY_COLUMNS, columns_of, speak_utf8
from adjourn.controller.decisions import Decisions
from adjourn.core import exits
from adjourn.core.ask import Principal
from adjourn.core.errors import AdjournError, NotFound, NothingRecorded, StoreRefused
from adjourn.core.text.render import command_rows, prose, wrap
from adjourn.wiring import enclosing_run, find_root, has_responses, open_decisions

TYPE_CHECKING = False

if TYPE_CHECKING:  # starting is a hot path: a short verb needs the decisions only
    from adjourn.controller.controller import Controller

_UNBOUNDED = 100_000


class Session:
    """One command line at work."""

    def __init__(self, *, wants_json: bool) -> None:
        self.wants_json = wants_json
        self.verbose = False
        self.cuts = True
        self.is_copy = True  # what it prints as JSON may be kept by others: secrets are taken out
        self.given_store: str | None = None
        # From inside a run, where a sandbox may hide the user's state directory
        self.only_asks = False
        self._controller: Controller | None = None
        self._decisions: Decisions | None = None
        self._clock: Callable[[], int] | None = None

    @property
    def root(self) -> str:
        """The store's directory."""
        return find_root(self.given_store or os.environ.get("ADJOURN_STORE"))

    def use_store_of(self, place: str) -> None:
        """Work on the store of that place, unless another one was named.

        Whoever calls from elsewhere means the same one.
        """
        found = find_root(self.given_store or os.environ.get("ADJOURN_STORE"), start=place)
        if found != self.root:
            self.given_store = found

    @property
    def has_store(self) -> bool:
        """Whether there is a store at all."""
        return os.path.lexists(self.root)

    @property
    def decisions(self) -> Decisions:
        """What decides on an existing store.

        That of the whole controller where dead supervisors or files left something to do.
        """
        if self._decisions is None:
            self.require_store()
            decisions = open_decisions(self.root)
            is_settled = decisions.is_settled and not has_responses(self.root)
            self._decisions = decisions if is_settled else self.controller.decisions
        return self._decisions

    @property
    def controller(self) -> "Controller":
        """The controller of an existing store."""
        if self._controller is None:
            from adjourn.wiring.controller import open_controller

            self.require_store()
            self._controller = open_controller(self.root, for_asking=self.only_asks)
            self._decisions = self._controller.decisions
            self.settle(self._controller)
        return self._controller

    def now(self) -> int:
        """Return the time in milliseconds, by the clock of the store.

        That of this machine may be an hour off.
        """
        return (self._clock or self.decisions.now)()

    def require_store(self) -> None:
        """Refuse to go on where there is no store: only a new task makes one."""
        if not self.has_store:
            raise NotFound(
                f"there is no store at {self.root} yet", way_out="adjourn run -- COMMAND"
            )

    def say_nothing_found(self, sentence: str) -> None:
        """Say that a list is empty, and where the store would be if there is none.

        Its name may be misspelt.
        """
        self.say(
            sentence
            if self.has_store
            else f"{sentence} There is no store at {prose(self.root)} yet."
        )

    def settle(self, controller: "Controller") -> None:
        """Settle the runs whose supervisor is gone, and write down those that turn out to have paused."""
        self._clock = controller.now
        settled = controller.runs.recover()
        if settled:
            from adjourn.clarifications.exchange import close_run
            from adjourn.supervision.manifest_file import project

            for task in settled:
                close_run(controller, self.root, task)
                project(self, controller.scene(task.id))
        if has_responses(self.root):
            from adjourn.clarifications.exchange import once, take_responses

            refuse = once(self.root, lambda sentence: self.warn(f"adjourn: {prose(sentence)}"))
            # A copy can be looked at; whoever wants to change it is told
            with suppress(StoreRefused):
                take_responses(controller, self.root, refuse=refuse)

    @property
    def inside_run(self) -> str | None:
        """The run that this command is part of, if any."""
        return enclosing_run()

    @property
    def principal(self) -> Principal:
        """Who is at the other end, as the store says, and the run it is part of, if any."""
        if self.has_store:
            return self.decisions.principal(inside_run=self.inside_run)
        return Principal(name=f"uid:{os.getuid()}", inside_run=self.inside_run)

    @property
    def has_colour(self) -> bool:
        """Whether colour helps: on a terminal, and only if nobody said otherwise."""
        return (
            sys.stdout.isatty()
            and not os.environ.get("NO_COLOR")
            and os.environ.get("TERM") != "dumb"
        )

    @property
    def columns(self) -> int:
        """How wide the terminal is; where there is none, nothing needs to be cut."""
        return columns_of(sys.stdout) or _UNBOUNDED

    @property
    def columns_for_words(self) -> int:
        """How wide an agent's words may be.

        The terminal, or 80 columns, as whoever shows a log may break its lines.
        """
        return columns_of(sys.stdout) or CUSTOMARY_COLUMNS

    def say(self, text: str) -> None:
        """Print to stdout, in rows that fit the terminal.

        Whoever closed it does not want to hear; the exit code still tells.
        """
        self.hand_out(_fitted(text, sys.stdout))

    def hand_out(self, text: str) -> None:
        """Print to stdout what programs read: not a character is added."""
        try:
            sys.stdout.write(text + "\n")
        except (BrokenPipeError, OSError, ValueError):
            _silence_stdout()

    def flush(self) -> None:
        """Hand out what was said so far, before somebody else writes to the same place."""
        try:
            sys.stdout.flush()
        except (BrokenPipeError, OSError, ValueError):
            _silence_stdout()

    def warn(self, text: str) -> None:
        """Print to stderr, with rows that fit the terminal."""
        try:
            sys.stderr.write(_fitted(text, sys.stderr) + "\n")
        except (BrokenPipeError, OSError, ValueError):
            return

    @cached_property
    def redactor(self) -> Any:
        """What takes secrets out of copies."""
        from adjourn.settings.redaction import open_redactor

        return open_redactor()

    def document(self, document: object) -> None:
        """Print one JSON document."""
        from adjourn.core.documents import encoded

        speak_utf8()
        self.hand_out(encoded(self.redactor.document(document) if self.is_copy else document))

    def fail(self, error: AdjournError) -> int:
        """Say what went wrong, why, and what helps."""
        try:
            self._tell(error)
        except OSError as problem:
            # What would tell it cannot even be loaded: for want of descriptors, say
            self.warn(f"adjourn: {prose(problem.strerror or 'the system fails')}")
        return error.exit_code

    def _tell(self, error: AdjournError) -> None:
        self._keep_redactor()
        if self.wants_json:
            from adjourn.core.documents import failure

            self.document(failure(error))
        else:
            clean = self.redactor.text
            self.warn(f"adjourn: {prose(clean(error.sentence))}")
            for item in error.items if isinstance(error, NothingRecorded) else ():
                why = f": {prose(clean(item.error.sentence))}" if item.error else ""
                self.warn(f"  {prose(item.ask_id)} {item.result}{why}")
            if error.way_out:
                way_out = prose(clean(error.way_out))
                columns = (
                    columns_of(sys.stderr) if way_out.startswith("adjourn ") else None
                ) or _UNBOUNDED
                self.warn("\n".join(command_rows("  try: ", way_out, columns=columns)))

    def _keep_redactor(self) -> None:
        """Make sure that an error can be told, also the one that the user's patterns cannot be used."""
        from adjourn.core.text.redact import Redactor

        try:
            self.redactor  # noqa: B018 -- it is kept once it was made
        except AdjournError:
            self.__dict__["redactor"] = Redactor()

    def stopped(self) -> int:
        """Say nothing more: a person pressed Ctrl+C while nothing of ours ran."""
        return 130

    def flushed(self, code: int) -> int:
        """Hand out what is still in the buffer, and keep the exit code whatever becomes of it."""
        self.flush()
        return code if code in exits.MEANINGS or code > exits.PAUSED else exits.FAILED


def _fitted(text: str, stream: TextIO) -> str:
    """Break rows before the terminal does, so that each begins with words of ours; see `wrap`."""
    columns = columns_of(stream)
    if columns is None:
        return text
    spelled = text.encode(stream.encoding, "backslashreplace").decode(stream.encoding)
    return wrap(spelled, columns=columns)


def _silence_stdout() -> None:
    """Keep the interpreter from complaining about a closed stdout when it ends."""
    sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 -- it lives until the process ends
