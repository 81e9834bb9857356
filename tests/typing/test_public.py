"""The public API as users type it.

This file is checked by both type checkers, and says what they must conclude.
"""

from contextlib import AbstractContextManager
from typing import Any, assert_type

import adjourn


def as_users_write_it() -> None:
    """Use every public name once."""
    assert_type(
        adjourn.ask("Which?", choices=["a", "b"], key="k", expires_after="8h", linger=30), str
    )
    questions: list[str | adjourn.Question] = [
        "Why?",
        adjourn.Question(key="Q2", prompt="When?", choices=("now", "later")),
    ]
    state = adjourn.WorkState(
        completed=["a"], in_progress=[], blocked=["b"], parallel_work_available=["c"]
    )
    context = adjourn.Context(
        session_context={"k": 1}, decisions=["d"], files_created=["e"], files_modified=["f"]
    )
    answers = adjourn.clarify(
        questions,
        work_state=state,
        context=context,
        tokens_burned=1,
        meanwhile=[lambda: None],
        linger=60,
    )
    assert_type(answers, dict[str, str])
    block: AbstractContextManager[str] = adjourn.approval(
        "Drop?", tool="drop", arguments={"table": "users"}
    )
    schema = {"type": "object", "properties": {"table": {"enum": ["users", "drafts"]}}}
    try:
        with block as value:
            said: str = value
            assert said
        with adjourn.approval(
            "Drop?", tool="drop", arguments={"table": "users"}, schema=schema, editable=True
        ) as approved:
            assert_type(approved, adjourn.Approved)
            assert_type(approved.arguments, dict[str, Any])
            assert_type(approved.is_edited, bool)
    except (
        adjourn.Rejected,
        adjourn.AlreadyDone,
        adjourn.EditIgnored,
        adjourn.NotInsideARun,
    ) as error:
        assert_type(error.sentence, str)
    adjourn.checkpoint.save({"done": [1, 2]})
    assert_type(adjourn.checkpoint.load(), Any)


def test_public_is_a_list() -> None:
    assert [name for name in adjourn.__all__ if getattr(adjourn, name, None) is None] == []
    assert dir(adjourn) == adjourn.__all__
