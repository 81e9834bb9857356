"""The exit codes of every adjourn command."""

COMPLETED = 0
FAILED = 1
USAGE = 2
NOT_FOUND = 3
CONFLICT = 4
NOT_ALLOWED = 5
CANNOT_RESUME = 6
PAUSED = 10

MEANINGS = {
    COMPLETED: "completed",
    FAILED: "failed",
    USAGE: "usage error",
    NOT_FOUND: "not found, or not unique",
    CONFLICT: "conflict: already decided, not paused, or superseded",
    NOT_ALLOWED: "not allowed",
    CANNOT_RESUME: "cannot be resumed; use restart",
    PAUSED: "paused: a person is needed",
}
