"""Every error adjourn can tell a person, in one tree.

AdjournError
├── Misuse              2  the words of the command do not fit
│   └── BadPolicy       2  a policy file says something that means nothing
├── NotFound            3  no such task, ask, call or checkpoint
│   └── Ambiguous       3  several begin with that prefix
├── Conflict            4  someone was first, or it is not the time for this
│   ├── AlreadySettled  4  the ask has its reply
│   ├── MoveRefused     4  the state does not allow the move
│   ├── StaleCheckpoint 4  a newer checkpoint exists
│   ├── AlreadyDone     4  the approved call was carried out before
│   └── Outdated        4  the row changed between reading and writing
├── NotAllowed          5  this principal may not
├── NotInsideARun       2  nobody is there to ask
├── Rejected            1  a person said no, or nobody said anything in time
├── CannotResume        6  only a restart can go on
└── StoreProblem        1  the store cannot be used
    ├── StoreRefused    5  it is not ours to use
    └── StoreDamaged    1  it is not a database any more
"""

from adjourn.core import exits


class AdjournError(Exception):
    """A failure with a code for machines, a sentence for people, and a way out."""

    code = "failed"
    exit_code = exits.FAILED

    def __init__(self, sentence: str, *, way_out: str = "") -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.way_out = way_out


class Misuse(AdjournError):
    """The words of the command do not fit."""

    code = "usage"
    exit_code = exits.USAGE


class BadPolicy(Misuse):
    """A policy file says something that means nothing; nothing runs before it is put right."""

    code = "bad_policy"


class NotFound(AdjournError):
    """No such task, ask, call or checkpoint."""

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


class NotAllowed(AdjournError):
    """Whoever asks may not do that."""

    code = "not_allowed"
    exit_code = exits.NOT_ALLOWED


class NotInsideARun(AdjournError):
    """Nobody is there to ask: the process was not started by adjourn."""

    code = "not_inside_a_run"
    exit_code = exits.USAGE


class Rejected(AdjournError):
    """A person said no, or nobody said anything in time; the sentence says who and why."""

    code = "rejected"


class CannotResume(AdjournError):
    """Only a restart can go on."""

    code = "cannot_resume"
    exit_code = exits.CANNOT_RESUME


class StoreProblem(AdjournError):
    """The store cannot be used."""

    code = "store"


class StoreRefused(StoreProblem):
    """The store is not ours to use, or not safe to use."""

    code = "store_refused"
    exit_code = exits.NOT_ALLOWED


class StoreDamaged(StoreProblem):
    """The store is not a database any more."""

    code = "store_damaged"
