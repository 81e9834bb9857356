"""Several people reply at the same moment: each approval counts once, and there is one outcome.

Promises 20; C-R14.
"""

import subprocess

import pytest

from tests.e2e.shell import Shell
from tests.e2e.test_four_eyes import Team, ask_of, effects, team  # noqa: F401 -- a fixture
from tests.needs import needs

needs("ssh-keygen")

ROUNDS = 3


def at_once(shell: Shell, *commands: list[str]) -> list[int]:
    """Start commands at the same moment, and return their exit codes."""
    started: list[subprocess.Popen[bytes]] = [shell.start(*words) for words in commands]
    said = [process.communicate(timeout=60) for process in started]
    codes = [process.returncode for process in started]
    assert not any(b"Traceback" in err for _, err in said), said
    assert set(codes) <= {0, 4}, said
    return codes


def test_two_who_approve_at_once_both_count(shell: Shell, team: Team) -> None:  # noqa: F811 -- the fixture
    """And of two processes of the same person one counts."""
    (ben, cleo) = (["--sign", team.signers.key(name)] for name in ("ben", "cleo"))
    for number in range(1, ROUNDS + 1):
        task, ask = team.waiting()
        approve = ["approve", ask]
        codes = at_once(shell, approve, approve, [*approve, *ben], [*approve, *cleo])
        found = ask_of(shell, task)
        people = [each["person"] for each in found["approvals"]["given"]]
        assert (codes.count(0), found["state"]) == (2, "approved")
        assert len(set(people)) == 2
        shell.adjourn("resume", task)
        assert len(effects(shell)) == number
    shell.adjourn("audit", "verify")


@pytest.mark.parametrize("other", ["reject", "edit"])
def test_the_last_approval_and_a_rejection_or_an_edit_have_one_outcome(
    shell: Shell,
    team: Team,  # noqa: F811 -- the fixture
    other: str,
) -> None:
    ben = ["--sign", team.signers.key("ben")]
    outcomes: set[str] = set()
    for _ in range(ROUNDS):
        (shell.place / "effects").unlink(missing_ok=True)
        task, ask = team.waiting()
        team.approve(ask)
        edit = ["approve", ask, "--set", "argv.2=echo edited >> effects"]
        second = ["reject", ask] if other == "reject" else edit
        codes = at_once(shell, ["approve", ask, *ben], [*second])
        found = ask_of(shell, task)
        outcomes.add(found["state"])
        if found["state"] == "approved":
            assert codes == [0, 4]
            shell.adjourn("resume", task)
            assert effects(shell) == ["deployed"]
        else:
            assert codes == [4, 0]  # who approved saw the call before the edit
            people = [each["person"] for each in found["approvals"]["given"]]
            assert people == ["anna"]
            assert found["state"] == ("rejected" if other == "reject" else "pending")
            assert effects(shell) == []
    assert outcomes <= {"approved", "rejected", "pending"}
    shell.adjourn("audit", "verify")
