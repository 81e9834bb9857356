"""Reports the steps of the protocol on stderr, in its own words, if ADJOURN_VERBOSE asks for it."""

import os
import sys

VERBOSE = "ADJOURN_VERBOSE"
# Set where a person watches an agent at a terminal: its driver prints each call
SHOW_CALLS = "ADJOURN_SHOW_CALLS"

POLLING = "[CLARIFICATION] Polling briefly to keep cache warm..."
IN_TIME = "[RESUMED] Response received during brief poll!"
NOT_IN_TIME = "[CHECKPOINT] No response yet - saving state and exiting"
WAITING = "[WAITING] Brief poll for quick response..."
SAVING = "[CHECKPOINT] Saving state and exiting"
SAVED = "[CHECKPOINT_SAVED] {phase}"
EXIT = "[EXIT] Agent terminating - will resume when response arrives"
QUESTION = "[AGENT_QUESTION] Background agent needs clarification:"
TRACKED = "[TRACKED] Agent {agent} checkpointed, monitoring for response"
WRITTEN = "[RESPONSE_WRITTEN] Response ready for agent"
READY = "[RESPONSE_READY] Agent {agent} can be resumed"
RESUMING = "[RESUMING] Agent {agent} with clarification responses"
RESUMED = "[RESUMED] Agent {agent} is now running again"


def say(line: str, *, wanted: bool | None = None) -> None:
    """Print one line on stderr, if the caller wants it, else if the environment does."""
    if wanted if wanted is not None else os.environ.get(VERBOSE):
        print(line, file=sys.stderr, flush=True)  # noqa: T201 -- this is the place that prints
