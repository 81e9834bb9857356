"""What a policy costs: judging a call under 2,000 rules against 20, and reading the files of them."""

import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from _figures import Figure, report, words

from adjourn.core.policy.judge import judge as judge_call
from adjourn.core.policy.judgement import Action
from adjourn.core.policy.opening import Surroundings
from adjourn.core.policy.policy import Origin, Policy, decode_policy, encode_policy
from adjourn.core.policy.policy_file import read_policy
from adjourn.settings.policies import read_all

GOAL = 3.0
FEW, MANY = 20, 2_000
ACTIONS = ("auto", "prompt", "never")
SEEN = Surroundings(
    program="/usr/bin/tool",
    programs={name: f"/usr/bin/{name}" for name in ("sh", "git", "ls", "wc", "terraform")},
)
CALLS: dict[str, Sequence[str]] = {
    "a command that no rule names": ("terraform", "apply", "-auto-approve"),
    "a command that a rule names": ("git", "status"),
    "a pipeline of three commands": ("sh", "-c", "git status | ls -l | wc -l"),
    "shell text that is not understood": ("sh", "-c", "for f in *; do rm $f; done > out"),
}


def main() -> int:
    """Measure, print, and say by the exit code whether a goal was missed."""
    parser = words(__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    given = parser.parse_args()
    kinds = {
        "as people write them": mixed,
        "a wildcard in every program": wild,
        "two wildcards": hidden,
    }
    code = 0
    for name, rules in kinds.items():
        few, many = policy(rules(FEW)), policy(rules(MANY))
        figures = [
            _figure(what, argv, few, many, rounds=given.rounds) for what, argv in CALLS.items()
        ]
        code |= report(
            f"judging a call, {MANY:,} rules against {FEW}, {name}; median of {given.rounds} rounds",
            figures,
        )
    _print_costs_of_reading()
    return code


def mixed(count: int) -> str:
    """Return rules for many programs, some with wildcards, and for some tools."""
    parts = [
        '[[rule]]\nargs = ["git", "status", "**"]\naction = "auto"',
        '[[rule]]\nargs = ["ls", "**"]\naction = "auto"',
        '[[rule]]\nargs = ["wc", "-l"]\naction = "auto"',
    ]
    for number in range(count - len(parts)):
        args = (
            f'["tool{number}", "sub{number % 7}", "**"]',
            f'["git", "sub{number}", "*.txt"]',
            f'["deploy", "--env=*{number}"]',
        )
        which = (
            f"args = {args[number % 3]}"
            if number % 4
            else f'tool = "tool_{number}"\nargs = {{ path = "/srv/{number}/*" }}'
        )
        parts.append(f'[[rule]]\n{which}\naction = "{ACTIONS[number % 3]}"')
    return "\n".join(parts)


def wild(count: int) -> str:
    """Return rules each of which begins or ends with its own text."""
    return "\n".join(
        f'[[rule]]\nargs = ["{f"tool{number}*" if number % 2 else f"*tool{number}"}", "**"]\naction = "{ACTIONS[number % 3]}"'
        for number in range(count)
    )


def hidden(count: int) -> str:
    """Return rules each of which looks for its own text anywhere in the program's name."""
    return "\n".join(
        f'[[rule]]\nargs = ["*tool{number}*", "**"]\naction = "{ACTIONS[number % 3]}"'
        for number in range(count)
    )


def policy(text: str) -> Policy:
    """Return the policy of a file, compiled."""
    content = read_policy(text, source="policy.toml", is_project=False)
    assert not content.problems, content.problems[0]
    made = Policy(rules=content.rules)
    judge(made, ("ls",))
    return made


def judge(rules: Policy, argv: Sequence[str]) -> Action:
    """Judge a command."""
    return judge_call(
        rules, "command", {"argv": list(argv)}, surroundings=SEEN, workspace="/work", now=0
    ).action


def _figure(what: str, argv: Sequence[str], few: Policy, many: Policy, *, rounds: int) -> Figure:
    times: dict[int, list[float]] = {FEW: [], MANY: []}
    for _ in range(rounds):
        for count, rules in ((FEW, few), (MANY, many)):
            times[count].append(_seconds(partial(judge, rules, argv)))
    floor, cost = median(times[FEW]), median(times[MANY])
    return Figure(what, _us(cost), f"{FEW} rules {_us(floor)}", cost / floor, GOAL)


def _seconds(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def _us(seconds: float) -> str:
    return f"{seconds * 1e6:,.0f} µs"


def _print_costs_of_reading() -> None:
    with TemporaryDirectory() as place:
        path = Path(place) / "policy.toml"
        for count in (FEW, MANY, 10_000):
            path.write_text(mixed(count))
            spans = [
                _seconds(lambda: read_all([Origin(str(path), is_project=False)])) for _ in range(3)
            ]
            print(f"reading a file with {count:,} rules: {median(spans) * 1000:,.0f} ms")
        rules = policy(mixed(MANY))
        body = encode_policy(rules)
        print(
            f"reading a snapshot of {MANY:,} rules ({len(body):,} bytes): {_seconds(lambda: decode_policy(body)) * 1000:,.1f} ms"
        )
        kept = decode_policy(body)
        print(
            f"judging by it for the first time: {_seconds(lambda: judge(kept, ('ls',))) * 1000:,.1f} ms"
        )


if __name__ == "__main__":
    sys.exit(main())
