"""Short ways to a policy and to what it says of a command."""

from adjourn.core.policy.judge import allowed_call, judge
from adjourn.core.policy.judgement import Judgement
from adjourn.core.policy.opening import Surroundings
from adjourn.core.policy.policy import Allowance, Policy
from adjourn.core.policy.policy_file import read_policy

WORKSPACE = "/project"
NOW = 1_000_000


class Everywhere(dict[str, str]):
    """Every bare program is in /usr/bin, and every other where it says."""

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> str:
        return name if name.startswith("/") else f"/usr/bin/{name}"


def seen(*names: str, at: str = "") -> Surroundings:
    """Return surroundings in which every program is where one expects it, but for those named."""
    return Surroundings(programs=Everywhere(dict.fromkeys(names, at)))


def policy(text: str, *, allowances: tuple[Allowance, ...] = ()) -> Policy:
    """Return the policy of a user's file that is right."""
    content = read_policy(text, source="policy.toml", is_project=False)
    assert content.problems == ()
    return Policy(rules=content.rules, never=content.never, allowances=allowances)


def judged(rules: str | Policy, *words: str) -> Judgement:
    """Return what a policy says of a command."""
    found = policy(rules) if isinstance(rules, str) else rules
    return judge(
        found, "command", {"argv": list(words)}, surroundings=seen(), workspace=WORKSPACE, now=NOW
    )


def allowance(*words: str, task: str | None = None) -> Allowance:
    """Return an always-allow rule for a command in the workspace, or in a task."""
    return Allowance(
        id="r1",
        call=allowed_call("command", {"argv": list(words)}),
        programs={words[0]: f"/usr/bin/{words[0]}"},
        until=NOW + 100,
        by="uid:1",
        at=NOW,
        workspace=None if task else WORKSPACE,
        task=task,
    )
