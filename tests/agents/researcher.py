"""Asks three questions at once and goes on with the answers. Its linger is its first argument."""

import sys

import adjourn

answers = adjourn.clarify(
    [
        "Which supervision pattern?",
        adjourn.Question(prompt="One file or many?", key="Q2", choices=("one", "many")),
        "By when?",
    ],
    blocked_at="Supervision pattern selection",
    reason="the log does not say",
    work_state=adjourn.WorkState(
        completed=["Read session logs"],
        in_progress=["Supervision pattern implementation"],
        blocked=["Supervision pattern selection (needs Q1 answer)"],
        parallel_work_available=["File watching logic", "Test harness setup"],
    ),
    context=adjourn.Context(
        session_context={"user": "ada"}, decisions=["use actors"], files_created=["spec.md"]
    ),
    next_phase="implementation",
    estimated_remaining_work="15-20 minutes",
    tokens_burned=12543,
    linger=float(sys.argv[1]),
)
print("COMPLETION_REPORT", answers["Q1"], answers["Q2"], answers["Q3"])
