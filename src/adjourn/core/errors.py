"""Every error adjourn can tell a person, in one tree.

AdjournError
├── Misuse              2  invalid arguments
│   ├── BadPolicy       2  a policy file is invalid
│   └── BadPlan         2  a plan's file is invalid
├── NotFound            3  no such task, ask, call, checkpoint or plan
│   └── Ambiguous       3  several begin with that prefix
├── Conflict            4  someone was first, or it is not the time for this
│   ├── AlreadySettled  4  the ask has its reply
│   ├── MoveRefused     4  the state does not allow the move
│   ├── StaleCheckpoint 4  a newer checkpoint exists
│   ├── AlreadyDone     4  the approved call was carried out before
│   ├── Outdated        4  the row changed between reading and writing
│   ├── WorkspaceBusy   4  a plan is at work there
│   └── NothingRecorded 4  of several replies some do not fit, so none counts
├── NotAllowed          5  this principal may not
├── NotInsideARun       2  cannot ask a person
├── Rejected            1  a person said no, or nobody said anything in time
├── EditIgnored         1  a person changed the arguments, and the process did not look
├── CannotResume        6  only a restart can go on
├── NotStarted          1  the machine could not start it, and it stays queued
├── UnreadableRow       1  what is kept of one thing cannot be read; everything else can
└── StoreProblem        1  the store cannot be used
    ├── StoreLost       1  it went away while a task was under way
    ├── StoreRefused    5  it is not ours to use
    │   ├── StoreNotBound 5  it is a copy, or another user's or machine's
    │   └── StoreOlder  5  it lacks what was acknowledged here
    ├── StoreReadOnly   1  it can be looked at, and no more
    └── StoreDamaged    1  it is not a database any more
"""

from collections.abc import Sequence

from adjourn.core import exits


class AdjournError(Exception):
    """A failure with a code for machines, a sentence for people, and a way out."""

    code = "failed"
    exit_code = exits.FAILED

    def __init__(self, sentence: str, *, way_out: str = "") -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.way_out = way_out

    @property
    def why(self) -> str:
        """What is wrong, in full."""
        return self.sentence


class Misuse(AdjournError):
    """Invalid arguments."""

    code = "usage"
    exit_code = exits.USAGE


class BadPolicy(Misuse):
    """A policy file is invalid. Nothing runs until it is fixed."""

    code = "bad_policy"


class BadPlan(Misuse):
    """A plan's file is invalid.

    None of its tasks starts until it is fixed.
    """

    code = "bad_plan"


class NotFound(AdjournError):
    """No such task, ask, call, checkpoint or plan."""

    code = "not_found"
    exit_code = exits.NOT_FOUND


class Ambiguous(NotFound):
    """Several ids begin with that prefix."""

    code = "ambiguous"


class Conflict(AdjournError):
    """Someone was first, or it is not the time for this."""

    code = "conflict"
    exit_code = exits.CONFLICT


class AlreadySettled(Conflict):
    """The ask has its reply; the sentence says whose, when and what."""

    code = "already_settled"


class MoveRefused(Conflict):
    """The state does not allow the move."""

    code = "move_refused"


class StaleCheckpoint(Conflict):
    """A newer checkpoint exists; the way out names it."""

    code = "stale_checkpoint"


class AlreadyDone(Conflict):
    """The approved call was carried out before; an approval serves once."""

    code = "already_done"


class Outdated(Conflict):
    """The row changed between reading and writing."""

    code = "outdated"


class WorkspaceBusy(Conflict):
    """A plan is at work in the workspace; the sentence says who executes it."""

    code = "workspace_busy"


class ReplyResult:
    """One of several replies: what it is to, what would come of it, and why nothing does."""

    def __init__(self, ask_id: str, *, result: str, error: AdjournError | None) -> None:
        self.ask_id = ask_id
        self.result = result
        self.error = error


class NothingRecorded(Conflict):
    """Of several replies some do not fit, so that none of them counts; it says which, and why.

    The exit code is that of the first that does not fit.
    """

    code = "nothing_recorded"

    items: Sequence[ReplyResult] = ()

    @property
    def why(self) -> str:
        """What is wrong with each that does not fit."""
        return "; ".join(item.error.sentence for item in self.items if item.error) or self.sentence

    @classmethod
    def of(cls, items: Sequence[ReplyResult]) -> "NothingRecorded":
        """Report for each item whether it was accepted."""
        refused = [item.error for item in items if item.error]
        error = cls(
            f"nothing was recorded: {len(refused)} of {len(items)} do not fit",
            way_out="adjourn inbox",
        )
        error.items = items
        error.exit_code = refused[0].exit_code if refused else error.exit_code
        return error


class NotAllowed(AdjournError):
    """The caller is not allowed to do that."""

    code = "not_allowed"
    exit_code = exits.NOT_ALLOWED


class NotInsideARun(AdjournError):
    """Nobody is there to ask: the process was not started by adjourn."""

    code = "not_inside_a_run"
    exit_code = exits.USAGE


class Rejected(AdjournError):
    """A person said no, or nobody said anything in time; the sentence says who and why."""

    code = "rejected"


class EditIgnored(AdjournError):
    """A person changed the arguments of a call, and its process did not look at them."""

    code = "edit_ignored"


class CannotResume(AdjournError):
    """Only a restart can go on."""

    code = "cannot_resume"
    exit_code = exits.CANNOT_RESUME


class NotStarted(AdjournError):
    """The machine could not start a task.

    Nothing of it ran, and it stays queued with its approval.
    """

    code = "not_started"

    reason = ""  # the same for every task that fails to start for it


class UnreadableRow(AdjournError):
    """What is kept of a task, a run, a call, an ask or an event cannot be read.

    Everything else can: lists leave it out and name it.
    """

    code = "unreadable"

    kind = "row"
    name = ""

    @classmethod
    def of(cls, kind: str, name: str) -> "UnreadableRow":
        """Return the error for one thing, by its kind and its name."""
        sentence = f"{kind} {name} cannot be read: its stored bytes are damaged"
        error = cls(sentence, way_out="adjourn doctor")  # no command mends bytes; this names them
        error.kind, error.name = kind, name
        return error

    def note_in(self, left_out: "dict[str, UnreadableRow]") -> None:
        """Remember it among what was left out, once, so that somebody is told."""
        left_out[self.sentence] = self.with_traceback(None)


class StoreProblem(AdjournError):
    """The store cannot be used."""

    code = "store"


class StoreLost(StoreProblem):
    """The store went away while a task was under way.

    To say the whole command again could start it a second time.
    """

    code = "store_lost"


class StoreRefused(StoreProblem):
    """The store is not ours to use, or not safe to use."""

    code = "store_refused"
    exit_code = exits.NOT_ALLOWED


class StoreNotBound(StoreRefused):
    """The store is a copy, or belongs to another machine or user.

    It can be looked at, and starts nothing.
    """

    code = "store_not_bound"


class StoreOlder(StoreRefused):
    """The store lacks what this machine has acknowledged or acted on.

    It can be looked at, and starts nothing.
    """

    code = "store_older"


class StoreReadOnly(StoreProblem):
    """The store can be looked at, and nothing in it can be changed just now."""

    code = "store_read_only"


class StoreDamaged(StoreProblem):
    """The store is not a database any more."""

    code = "store_damaged"
