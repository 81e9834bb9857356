"""What a store holds, and what a command gets, is documented."""

import json
import re
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

from docs import generate
from tests.docs.program import adjourn, wait_for_start
from tests.docs.shell import environment
from tests.needs import needs


def test_every_variable_that_a_command_gets_is_documented(tmp_path: Path) -> None:
    printed = adjourn(tmp_path, "run", "--", "env").stdout
    given = {
        name
        for line in printed.splitlines()
        if (name := line.partition("=")[0]).startswith("ADJOURN_")
    }
    assert given == {name for name in generate.GIVEN if name.startswith("ADJOURN_")}


def test_every_file_of_a_store_is_documented_with_its_mode(tmp_path: Path) -> None:
    adjourn(tmp_path, "run", "--", "sh", "-c", "exit 90")
    task = adjourn(tmp_path, "run", "--detach", "--", "sleep", "60").stdout.strip()
    with subprocess.Popen(
        [needs("adjourn"), "wait", task],
        cwd=tmp_path,
        env=environment(tmp_path),
        stdout=subprocess.DEVNULL,
    ):
        wait_for_start(tmp_path, task)
        while not any((tmp_path / ".adjourn").glob("wake/*")):
            adjourn(tmp_path, "tasks")
        found = {
            pattern(path, tmp_path / ".adjourn"): mode(path)
            for path in everything(tmp_path / ".adjourn")
        }
        adjourn(tmp_path, "cancel", task)
    documented = {kept.path: kept.mode for kept in generate.FILES}
    assert {path: oct(documented.get(path, 0)) for path in found} == {
        path: oct(mode) for path, mode in found.items()
    }
    assert documented.keys() - found.keys() <= {
        "policy.toml",
        "runs/RUN/shim.error",
        *OF_EDITS,
        "notify",
        "notify/NAME.lock",
        "notify.lock",
        *OF_CLARIFICATIONS,
        *OF_PLANS,
    }


OF_EDITS = {kept.path for kept in generate.FILES if kept.path.startswith("edits")}
OF_CLARIFICATIONS = {
    kept.path for kept in generate.FILES if kept.path.startswith(("clarifications", "checkpoints"))
} | {
    "runs/RUN/answers.json",
    "runs/RUN/prompt.md",
}


OF_PLANS = {kept.path for kept in generate.FILES if kept.path.startswith("plans")} | {
    "runs/RUN/feedback.md"
}


def test_the_files_of_a_clarification_are_as_documented(tmp_path: Path) -> None:
    """B-R11, B-R23."""
    ask = "import adjourn, os; adjourn.clarify(['Why?'], linger=0); print(*os.environ)"
    adjourn(tmp_path, "run", "--", "python3", "-c", ask)
    task = next((tmp_path / ".adjourn" / "checkpoints").iterdir()).name.partition(".")[0]
    response = tmp_path / ".adjourn" / "clarifications" / f"{task}.response.yaml"
    response.write_text("resume_signal: false")
    adjourn(tmp_path, "tasks")
    response.unlink()
    documented = {kept.path: kept.mode for kept in generate.FILES}
    found = {
        pattern(path, tmp_path / ".adjourn"): mode(path)
        for path in everything(tmp_path / ".adjourn")
    }
    given = adjourn(tmp_path, "resume", task, "Because.").stdout.split()
    found |= {
        pattern(path, tmp_path / ".adjourn"): mode(path)
        for path in everything(tmp_path / ".adjourn")
    }
    of_them = OF_CLARIFICATIONS - {"clarifications/TASK.response.yaml"}
    assert {path: documented[path] for path in of_them} == {path: found[path] for path in of_them}
    assert {name for name in given if name in generate.AT_TIMES} == generate.AT_TIMES.keys() - {
        "ADJOURN_SHOW_CALLS",
        "ADJOURN_VERBOSE",
        "ADJOURN_FEEDBACK",
        "ADJOURN_RUN_KEY",
    }


def test_the_files_of_a_plan_and_its_reviews_are_as_documented(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text('review = true\n[[task]]\nid = "a"\ncommand = ["env"]\n')
    adjourn(tmp_path, "execute")
    ask = json.loads(adjourn(tmp_path, "inbox", "--output", "json").stdout)["asks"][0]["id"]
    adjourn(tmp_path, "answer", ask, "request changes: more")
    assert "ADJOURN_FEEDBACK=" in adjourn(tmp_path, "execute").stdout
    found = {
        pattern(path, tmp_path / ".adjourn"): mode(path)
        for path in everything(tmp_path / ".adjourn")
    }
    documented = {kept.path: kept.mode for kept in generate.FILES}
    assert {path: documented[path] for path in OF_PLANS} == {path: found[path] for path in OF_PLANS}


def test_the_files_of_an_edit_are_as_documented(tmp_path: Path) -> None:
    adjourn(tmp_path, "run", "--", "sh", "-c", "exit 90")
    asks = json.loads(adjourn(tmp_path, "inbox", "--output", "json").stdout)["asks"]
    editor = tmp_path / "editor.sh"
    editor.write_text(
        "#!/bin/sh\nstat -c '%a %n' .adjourn/edits .adjourn/edits/* .adjourn/edits/*/* > seen\nexit 1\n"
    )
    editor.chmod(0o700)
    environment_of = environment(tmp_path) | {"EDITOR": str(editor)}
    subprocess.run(
        [needs("adjourn"), "approve", asks[0]["id"], "--edit"],
        cwd=tmp_path,
        env=environment_of,
        check=False,
    )
    lines = [line.split() for line in (tmp_path / "seen").read_text().splitlines()]
    found = {
        re.sub(r"/\d+", "/PID", path.removeprefix(".adjourn/")): int(mode, 8)
        for mode, path in lines
    }
    assert found == {kept.path: kept.mode for kept in generate.FILES if kept.path in OF_EDITS}


def everything(root: Path) -> Iterator[Path]:
    """Yield a directory and all that is in it."""
    yield root
    yield from root.rglob("*")


def mode(path: Path) -> int:
    """Return a file's permissions."""
    return stat.S_IMODE(path.lstat().st_mode)


def pattern(path: Path, root: Path) -> str:
    """Return the path as the reference names it."""
    name = re.sub(r"^runs/[^/]+", "runs/RUN", "/".join(path.relative_to(root).parts))
    name = re.sub(r"^started/[^/]+", "started/CALL", name)
    name = re.sub(r"^session/[a-z2-7]{26}", "session/TASK", name)
    name = re.sub(r"^(clarifications|checkpoints)/[a-z2-7]{26}", r"\1/TASK", name)
    name = re.sub(r"^(supervisors|plans)/[^/]+\.lock$", r"\1/NAME.lock", name)
    return re.sub(r"^wake/[^/]+$", "wake/NAME", name)
