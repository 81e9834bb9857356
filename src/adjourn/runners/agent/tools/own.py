"""Tools that act on the task itself: finish, ask."""

from adjourn.runners.agent.tools.tool import Tool, schema, text

FINISH = Tool(
    name="finish",
    description="Say that the work is done. Call it alone, when nothing is left to do.",
    schema=schema(["message"], message=text("what was done, for the person who asked")),
    read_only=True,
)
ASK = Tool(
    name="ask",
    description="Ask a person a question, when you cannot go on without the answer.",
    schema=schema(
        ["question"],
        question=text("the question"),
        choices={"type": "array", "items": {"type": "string"}, "description": "the answers to choose from, if any"},
    ),
    read_only=True,
)
RUN_COMMAND = Tool(
    name="run_command",
    description="Run a command line with /bin/sh in the workspace. Its input is empty; output and exit code come back.",
    schema=schema(
        ["command"],
        command=text("the command line"),
        timeout={"type": "number", "minimum": 0.1, "description": "seconds after which it is stopped"},
    ),
)
OWN = frozenset({FINISH.name, ASK.name})
