"""A plan in a store that machines share: the same words, the same effects."""

from tests.plans.planner import Planner, noted


def test_a_plan_is_executed_in_a_shared_store(shell: Planner, database: str) -> None:
    """D-R48: waits, reviews, and goes on; begun once."""
    shell.environment["ADJOURN_STORE"] = database
    shell.environment["XDG_STATE_HOME"] = str(shell.place / ".state")
    shell.plan(noted("a", pause_on_approval=True), noted("b", "a", review=True), noted("c"))
    shell.execute(expect=10)
    assert shell.effects == ["c"]
    shell.adjourn("approve", shell.inbox()[0]["id"])
    shell.execute(expect=10)
    (review,) = shell.inbox()
    shell.adjourn("answer", review["id"], "approve")
    shell.execute()
    assert shell.effects == ["c", "a", "b"]
    assert set(shell.states().values()) == {"succeeded"}
