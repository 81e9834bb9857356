"""What every verb has: its options, the store that it works on, and what prints."""

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from typing import TextIO

from adjourn.cli.terminal import fitted, print_exactly, print_warning, printed, speak_utf8
from adjourn.controller.decisions import Decisions
from adjourn.core.ask import Principal
from adjourn.core.errors import AdjournError, Misuse, NotFound, NothingRecorded, StoreRefused
from adjourn.core.text.render import Cut, prose
from adjourn.process.ancestry import enclosing_run
from adjourn.views.block import Block, CommandBlock, Commands, Line, Span, cut_of, lines
from adjourn.wiring import find_root, has_responses, open_decisions

TYPE_CHECKING = False

if TYPE_CHECKING:  # start-up is a hot path: a short verb loads none of these
    from adjourn.controller.controller import Controller
    from adjourn.core.documents import Manifest
    from adjourn.core.errors import UnreadableRow
    from adjourn.core.redact import Redactor
    from adjourn.core.scene import Scene
    from adjourn.ports.store import Store


_NAMED = 5  # rows that cannot be read


class Session:
    """One command line at work."""

    def __init__(self, *, wants_json: bool) -> None:
        self.wants_json = wants_json
        self.verbose = False
        self.full_ids = False
        self.shows_all = False  # values and lists are not cut
        self.is_copy = True  # what it prints as JSON may be kept by others: secrets are taken out
        self.prints_whole = False  # its text is what a person decides on, or asked for exactly
        self.is_prompt = False  # `-a`: also one word is a prompt
        self.given_store: str | None = None
        self.root = ""  # the store's directory, once it was found
        self.is_elsewhere = False  # whether it is another one than the nearest
        # Of rows that were named by `@N`: their stores, and the calls that were shown of asks
        self.row_stores: list[str] = []
        self.row_digests: dict[str, str] = {}
        self._store: Store | None = None  # the one that was opened last
        self._redactor: Redactor | None = None

    # --- the store --------------------------------------------------------------------------------

    def find_root(self, start: str | None = None) -> None:
        """Find the store's directory: the one that is named, else the nearest from here or a start.

        With a start, it is from then on named in commands if another one is nearest from here.
        """
        named = self.given_store or os.environ.get("ADJOURN_STORE")
        rows = set(self.row_stores)
        if len(rows) > 1:
            raise Misuse(
                f"these rows are in several stores: {', '.join(sorted(rows))}",
                way_out="name rows of one store at a time",
            )
        if rows and not named:
            self.change_root(*rows)
            return
        found = find_root(named, start=start)
        if rows and os.path.realpath(found) not in rows:
            raise Misuse(
                f"that row is in the store {rows.pop()}, but another store was given",
                way_out="adjourn inbox",
            )
        if start and found != self.root:
            self.given_store = found
        self.root = found

    def change_root(self, root: str) -> None:
        """Work on a store of this user; commands that are printed name it if it is not here."""
        here = find_root(None)
        if os.path.realpath(here) == os.path.realpath(root):
            self.root = here
            return
        self.root = self.given_store = root
        self.is_elsewhere = True

    @property
    def has_store(self) -> bool:
        """Whether there is a store at all."""
        return os.path.lexists(self.root)

    def require_store(self) -> None:
        """Refuse to go on where there is no store: only a new task makes one."""
        if not self.has_store:
            raise NotFound(
                f"there is no store at {self.root} yet", way_out="adjourn run -- COMMAND"
            )

    def require_named_store(self) -> None:
        """Refuse to read a store that --store names and that is not there: it may be misspelt.

        One that the environment names may have no task yet.
        """
        if self.given_store and not self.has_store:
            raise NotFound(
                f"there is no store at {self.root}", way_out="adjourn inbox --everywhere"
            )

    def open_decisions(self) -> Decisions:
        """Open an existing store for decisions.

        The whole controller only where dead supervisors or files left something to do.
        """
        self.require_store()
        decisions = open_decisions(self.root)
        self._store = decisions.store
        if decisions.is_settled and not has_responses(self.root):
            return decisions
        return self.open_controller().decisions

    def open_controller(self, *, for_asking: bool = False) -> "Controller":
        """Open an existing store and settle what dead supervisors left in it.

        Who asks from inside a run may not see the user's state directory: a sandbox may hide it.
        """
        # A short verb does without what runs and settles
        from adjourn.wiring.controller import open_controller

        self.require_store()
        controller = open_controller(self.root, for_asking=for_asking)
        self._store = controller.store
        self.settle(controller)
        return controller

    def settle(self, controller: "Controller") -> None:
        """Settle the runs whose supervisor is gone, and take the answers that lie in files."""
        self._store = controller.store
        if settled := controller.runs.recover():
            # Seldom: supervisors do not die often
            from adjourn.clarifications.exchange import close_run

            for task in settled:
                close_run(controller, self.root, task)
                self.write_manifest(controller.scene(task.id))
        if has_responses(self.root):
            # Seldom: most answers are given to a verb
            from adjourn.clarifications.exchange import report_refusals, take_responses

            refuse = report_refusals(
                controller, self.root, lambda sentence: self.warn(f"adjourn: {prose(sentence)}")
            )
            # A copy can be read; a command that would change it is refused
            with suppress(StoreRefused):
                take_responses(controller, self.root, refuse=refuse)

    def write_manifest(self, scene: "Scene") -> "Manifest":
        """Return how a task stands; if it is paused, its manifest files are written."""
        # A short verb writes none
        from adjourn.supervision.manifest_file import write_manifest

        return write_manifest(
            scene,
            root=self.root,
            commands=self.commands,
            redactor=self.open_redactor(),
            warn=lambda sentence: self.warn(f"adjourn: {sentence}"),
        )

    def principal(self, decisions: Decisions | None) -> Principal:
        """Return who is at the other end, as the store says, and the run it is part of, if any."""
        inside_run = enclosing_run()
        if decisions is None:
            return Principal(name=f"uid:{os.getuid()}", inside_run=inside_run)
        return decisions.principal(inside_run=inside_run)

    def tell_refusal(self, verb: str, error: AdjournError) -> None:
        """Record that what is part of a run wanted to decide, in the trail of the run's task.

        Where nothing can be recorded, it was refused all the same.
        """
        with suppress(AdjournError, OSError):
            by = self.principal(None)
            if not by.inside_run or not self.root or not self.has_store:
                return
            decisions = open_decisions(self.root)
            task_id = decisions.task_around(by.inside_run)
            if task_id:
                by = self.principal(decisions)
                decisions.tell_refusal(task_id, verb=verb, why=error.sentence, by=by)

    @property
    def commands(self) -> Commands:
        """What writes command lines of this very program on this very store."""
        program = _program(sys.argv[0], os.environ.get("PATH", ""))
        store = self.root if self.given_store else None
        return Commands(program, store, shorten=self.name_of if self.shortens_ids else str)

    @property
    def shortens_ids(self) -> bool:
        """Whether a person reads what is printed; others may keep it, and get all of each id."""
        return not (self.full_ids or self.wants_json) and sys.stdout.isatty()

    def name_of(self, identifier: str) -> str:
        """Return the beginning of a task's or an ask's id that names nothing else in the store."""
        # Only at a terminal (bench start)
        from adjourn.views.call import unique_name

        if self._store is None:
            return identifier
        try:
            with self._store.read() as view:
                return unique_name(
                    lambda text: {*view.tasks_like(text), *view.asks_like(text)}, identifier
                )
        except AdjournError:  # it is closed, or just being read
            return identifier

    def commands_for(self, root: str) -> Commands:
        """Return what writes command lines for any store."""
        is_here = root == self.root and not self.given_store
        program = _program(sys.argv[0], os.environ.get("PATH", ""))
        return Commands(program, None if is_here else root)

    def cut(self, task_id: str) -> Cut:
        """Return how much of a task's values is shown, and how to see the rest."""
        cut = cut_of(task_id, self.commands, shows_all=self.shows_all)
        return fitted(cut) if not self.shows_all and sys.stdout.isatty() else cut

    # --- printing ---------------------------------------------------------------------------------

    def print(self, text: str) -> None:
        """Print to stdout, in rows that fit the terminal."""
        self.show(lines(text.split("\n")))

    def show(self, blocks: Sequence[Block]) -> None:
        """Print blocks to stdout, in rows that fit the terminal and in colour where that helps."""
        if self.shortens_ids:
            blocks = [self._with_names(block) for block in blocks]
        print_exactly(self._copied(printed(blocks, sys.stdout), sys.stdout))

    def _with_names(self, block: Block) -> Block:
        """Return a line with the ids in it shortened."""
        if not isinstance(block, Line) or all(span.role != "id" for span in block.spans):
            return block
        spans = [
            Span(self.name_of(span.text)) if span.role == "id" else span for span in block.spans
        ]
        return Line(tuple(spans), block.may_break)

    def warn(self, text: str) -> None:
        """Print to stderr, in rows that fit the terminal."""
        print_warning(self._copied(printed(lines(text.split("\n")), sys.stderr), sys.stderr))

    def _copied(self, text: str, stream: TextIO) -> str:
        """Return a finished text as a stream may have it.

        Where nobody looks, as in the log of a CI job, which others keep, secrets are taken out.
        """
        if self.prints_whole or not text.strip() or stream.isatty():
            return text
        # At a terminal no secrets are taken out (bench start)
        from adjourn.core.redact import plainly

        return self.open_redactor().text(plainly(text))

    @property
    def unreadable(self) -> "list[UnreadableRow]":
        """What was left out so far, because it cannot be read."""
        return list(self._store.unreadable.values()) if self._store else []

    def warn_of_unreadable(self) -> None:
        """Name what was left out because it cannot be read, or the first of very many."""
        left_out = self.unreadable
        for error in left_out[:_NAMED]:
            self.warn(f"adjourn: {prose(error.sentence)}")
        if left_out:
            rest = len(left_out) - _NAMED
            more = f"{rest:,} more cannot be read; " if rest > 0 else ""
            self.warn(f"  {more}try: {self.commands('doctor')}")

    def print_document(self, document: object) -> None:
        """Print one JSON document."""
        # A short verb mostly prints text
        from adjourn.core.documents import encoded

        speak_utf8()
        print_exactly(
            encoded(self.open_redactor().document(document) if self.is_copy else document)
        )

    def print_nothing_found(self, sentence: str) -> None:
        """Print that a list is empty, and where the store would be if it does not exist.

        Its name may be misspelt.
        """
        missing = "" if self.has_store else f" There is no store at {prose(self.root)} yet."
        self.print(f"{sentence}{missing}")

    def open_redactor(self) -> "Redactor":
        """Return what takes secrets out of copies; the user's patterns are read once."""
        if self._redactor is None:
            # Most commands print no copy (bench start)
            from adjourn.settings.config import open_redactor

            self._redactor = open_redactor()
        return self._redactor

    @property
    def redactor_of_text(self) -> "Redactor | None":
        """What takes secrets out of text on stdout; nothing if a person looks at it there."""
        return None if sys.stdout.isatty() else self.open_redactor()

    def open_any_redactor(self) -> None:
        """Take the built-in patterns where the user's cannot be used, and this must be told."""
        # Most commands print no copy (bench start)
        from adjourn.core.redact import Redactor

        try:
            self.open_redactor()
        except AdjournError:
            self._redactor = Redactor()

    def fail(self, error: AdjournError) -> int:
        """Print what went wrong, why, and what helps; return the exit code."""
        try:
            self._print_error(error)
        except OSError as problem:
            # The code that would print it cannot be loaded, for example without descriptors
            self.warn(f"adjourn: {prose(problem.strerror or 'the system fails')}")
        return error.exit_code

    def _print_error(self, error: AdjournError) -> None:
        self.open_any_redactor()
        if self.wants_json:
            # Only JSON needs it (bench start)
            from adjourn.core.documents import failure

            self.print_document(failure(error))
            return
        clean = self.open_redactor().text
        self.warn(f"adjourn: {prose(clean(error.sentence))}")
        for item in error.items if isinstance(error, NothingRecorded) else ():
            why = f": {prose(clean(item.error.sentence))}" if item.error else ""
            self.warn(f"  {prose(item.ask_id)} {item.result}{why}")
        if error.way_out:
            way_out = prose(clean(error.way_out))
            is_ours = way_out.startswith("adjourn ")
            shown = [CommandBlock("  try: ", way_out)] if is_ours else lines([f"  try: {way_out}"])
            print_warning(printed(shown, sys.stderr))


@cache
def _program(called: str, path: str) -> str:
    """Return `adjourn` if a shell finds us under that name, else the path it was called by."""
    called = os.path.abspath(called)
    own = called if os.path.basename(called) == "adjourn" else "adjourn"
    for directory in path.split(os.pathsep):
        found = os.path.join(directory, "adjourn")
        if os.access(found, os.X_OK):
            return "adjourn" if os.path.realpath(found) == os.path.realpath(called) else own
    return own
