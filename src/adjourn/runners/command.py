"""Runs any command: what its exit codes mean, and what its last words on stdout were."""

from collections.abc import Iterator

from adjourn.core.outcome import (
    Completed,
    Exit,
    Failed,
    Interrupted,
    Outcome,
    Standing,
    Waits,
    WantsApproval,
)
from adjourn.core.policy.judgement import Effect

NEEDS_A_PERSON = frozenset({10, 90})
_TRIES = 200
_LINE = 2_000
_LAST_LINES = 5


class CommandRunner:
    """Knows nothing of what it runs but its exit code, its asks, and the JSON it printed last."""

    effect = Effect.UNKNOWN
    needs_session = False
    makes_calls = True

    def meaning(self, exit: Exit, standing: Standing) -> Outcome:  # noqa: A002 -- the word for it
        """Say what an exit meant."""
        if exit.interrupted:
            return Interrupted()
        if exit.error:
            return Failed(exit.error)
        if exit.may_leave_asks and exit.left and exit.left.problem:
            return Failed(f"it waits for a clarification that cannot be read: {exit.left.problem}")
        if standing.open_asks or standing.settled_asks:
            return _with_asks(exit, standing)
        if exit.code in NEEDS_A_PERSON:
            return _needs_a_person(exit, standing)
        if exit.code != 0:
            return Failed(_with_tasks(exit, standing) if standing.open_children else ending(exit))
        return Waits() if standing.open_children else Completed(last_line(exit.output))


def _with_asks(exit: Exit, standing: Standing) -> Outcome:  # noqa: A002 -- the word for it
    if exit.may_leave_asks:
        return Waits()
    if not standing.open_asks:
        return Failed(ending(exit))
    asks = ", ".join(standing.open_asks)
    return Failed(f"{ending(exit)} with open asks ({asks}): did the script drop exit code 10?")


def _with_tasks(exit: Exit, standing: Standing) -> str:  # noqa: A002 -- the word for it
    tasks = ", ".join(standing.open_children)
    return (
        f"{ending(exit)} while tasks that it started are not done ({tasks}):"
        " did the script drop exit code 10?"
    )


def _needs_a_person(exit: Exit, standing: Standing) -> Outcome:  # noqa: A002 -- the word for it
    if standing.open_children or standing.ended_children:
        return Waits()
    if not standing.asks_by_exit_code:
        return Failed(ending(exit))
    manifest = last_json_object(exit.output)
    if standing.was_approved and manifest in {None, standing.approved_manifest}:
        return Failed(
            f"it was approved, and left with exit code {exit.code} again: does it read "
            "AUTO_APPROVAL?"
        )
    said = exit.errors if exit.errors.strip() else exit.output
    return WantsApproval(manifest, None if manifest else last_lines(said))


def ending(exit: Exit) -> str:  # noqa: A002 -- the word for it
    """Say how a process left."""
    return f"signal {exit.signal}" if exit.signal else f"exit code {exit.code}"


def last_line(output: str) -> str | None:
    """Return the last line that says something."""
    lines = output.rstrip().rsplit("\n", 1)
    return lines[-1][-_LINE:] or None


def last_lines(output: str) -> str | None:
    """Return the last few lines of an output, in which an error mostly stands."""
    lines = output.rstrip().splitlines()[-_LAST_LINES:]
    return "\n".join(line[:_LINE] for line in lines) or None


def last_json_object(output: str) -> str | None:
    """Return the last JSON object that begins a line, whatever follows it."""
    from json import JSONDecoder  # seldom needed, and slow to import

    decoder = JSONDecoder(parse_constant=_refuse_constant)
    for start in _line_starts(output):
        try:
            _, end = decoder.raw_decode(output, start)
        except (ValueError, RecursionError):
            continue
        return output[start:end]
    return None


def _refuse_constant(name: str) -> None:
    """NaN and the infinities are Python's, not JSON's."""
    raise ValueError(name)


def _line_starts(output: str) -> Iterator[int]:
    """Yield where lines begin with a brace, from the last one up."""
    start = len(output)
    for _ in range(_TRIES):
        start = output.rfind("\n{", 0, start)
        if start < 0:
            break
        yield start + 1
    if output.startswith("{"):
        yield 0
