"""A background agent: three questions at once, and work that needs no answer while it waits."""

import sys

import adjourn

notes = adjourn.checkpoint.load({})


def watch_files() -> None:
    notes["watcher"] = "written"
    adjourn.checkpoint.save(notes)


answers = adjourn.clarify(
    [
        "Which supervision pattern?",
        adjourn.Question(key="Q2", prompt="One actor or many?", choices=("one", "many")),
        "Who reviews it?",
    ],
    blocked_at="Supervision pattern selection",
    reason="the session log names two patterns",
    work_state=adjourn.WorkState(
        completed=["Read session logs"],
        blocked=["Supervision pattern selection (needs Q1)"],
        parallel_work_available=["File watching logic"],
    ),
    context=adjourn.Context(decisions=["use actors"], files_created=["file-watcher.spec.md"]),
    estimated_remaining_work="15-20 minutes",
    tokens_burned=12543,
    meanwhile=[watch_files],
    linger=float(sys.argv[1]) if sys.argv[1:] else 60,
)
print(
    f"COMPLETION_REPORT: {answers['Q1']}, {answers['Q2']}, reviewed by {answers['Q3']}; "
    f"watcher {notes['watcher']}"
)
