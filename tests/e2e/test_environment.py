"""What a supervised process finds around it."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.shell import ADJOURN, Shell

FORGED = {
    "AUTO_APPROVAL": "yes",
    "ADJOURN_RUN_ID": "",
    "ADJOURN_TASK_ID": "forged",
    "ADJOURN_CALL_ID": "forged",
    "ADJOURN_GRANT_FD": "7",
    "ADJOURN_ANYTHING": "forged",
}


def records(shell: Shell) -> list[dict[str, Any]]:
    """Return what record.py saw, run by run."""
    return [json.loads(line) for line in shell.lines("record")]


def test_an_approval_from_outside_is_not_inherited(shell: Shell) -> None:
    """C-R8, C-R15: only the run that a decision started has AUTO_APPROVAL."""
    manifest = shell.json(
        "run", "--", shell.agent("record.py"), expect=10, env={"AUTO_APPROVAL": "forged"}
    )
    shell.adjourn(
        "-c",
        manifest["checkpoint_id"],
        "--approve-all",
        "--value",
        "real",
        env={"AUTO_APPROVAL": "forged"},
    )
    first, second = (record["env"].get("AUTO_APPROVAL") for record in records(shell))
    assert (first, second) == (None, "real")


def test_an_approval_is_not_handed_down_to_a_task_that_is_started_inside(shell: Shell) -> None:
    """C-R8: it was given to one call; whatever that call starts under adjourn asks for itself."""
    shell.agent("approved.sh")
    manifest = shell.paused(
        shell.script('[ "$AUTO_APPROVAL" ] || exit 90; adjourn run -- ./approved.sh || exit $?')
    )
    waiting = shell.adjourn(
        "-c", manifest["checkpoint_id"], "--approve-all", "--output", "json", expect=10
    ).doc
    assert len(waiting["waiting_on"]) == 1
    assert shell.lines("effects") == []


def test_the_variables_of_a_run_are_set_afresh(shell: Shell) -> None:
    """Nothing of an outer run, nothing forged: the store, the task, the run and the call."""
    manifest = shell.json("run", "--", shell.agent("record.py"), expect=10, env=FORGED)
    shell.adjourn("-c", manifest["checkpoint_id"], "--approve-all", env=FORGED)
    for number, record in enumerate(records(shell), start=1):
        seen = {name: value for name, value in record["env"].items() if name.startswith("ADJOURN_")}
        assert seen == {
            "ADJOURN_STORE": str(shell.store),
            "ADJOURN_STATE": os.path.join(shell.environment["XDG_STATE_HOME"], "adjourn"),
            "ADJOURN_TASK_ID": manifest["task_id"],
            "ADJOURN_RUN_ID": f"{manifest['task_id']}.{number}",
            "ADJOURN_CALL_ID": f"{manifest['task_id']}.tc_{number}",
            "ADJOURN_GRACE": "5",
            **({"ADJOURN_GRANT_FD": "3"} if number > 1 else {}),
        }


def test_the_very_same_adjourn_comes_first_on_the_path(shell: Shell) -> None:
    """Also when the person's PATH has another one, or none at all."""
    shell.script("echo an impostor", name="adjourn")
    impostor = f"{shell.place}{os.pathsep}/usr/bin{os.pathsep}/bin"
    said = shell.adjourn(
        "run", "--", "sh", "-c", "command -v adjourn; adjourn --version", env={"PATH": impostor}
    ).out
    assert os.path.realpath(said.splitlines()[0]) == str(ADJOURN)
    assert "impostor" not in said
    found = shell.adjourn("run", "--", "/bin/sh", "-c", "command -v adjourn", env={"PATH": ""}).out
    assert os.path.realpath(found.rstrip("\n")) == str(ADJOURN)


def test_a_run_works_where_it_was_started_with_the_persons_environment(
    shell: Shell, tmp_path: Path
) -> None:
    """D-R41: the workspace is the directory of the command, also when the resume comes from elsewhere."""
    deep = tmp_path / "deep" / "down"
    deep.mkdir(parents=True)
    shell.json("run", "--", "true")
    shell.agent("record.py")
    manifest = shell.adjourn(
        "run",
        "--output",
        "json",
        "--",
        "../../record.py",
        cwd=deep,
        env={"FLAVOUR": "mint"},
        expect=10,
    ).doc
    shell.adjourn(
        "resume", manifest["task_id"], "--approve-all", "--store", str(shell.store), cwd="/"
    )
    seen = [json.loads(line) for line in (deep / "record").read_text().splitlines()]
    assert [record["cwd"] for record in seen] == [str(deep), str(deep)]
    assert seen[0]["env"]["FLAVOUR"] == "mint"
    (run, _) = shell.runs(manifest["task_id"])
    assert run["repo_root"] == str(deep)


@pytest.mark.parametrize(
    "where", ["given", "variable", "nearest", "git root", "empty .git", "here"]
)
@pytest.mark.one_machine("a database is where its URL says")
def test_the_store_is_where_one_would_look_for_it(shell: Shell, tmp_path: Path, where: str) -> None:
    """--store, ADJOURN_STORE, the nearest .adjourn upwards, else the git root, else here."""
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    options: tuple[str, ...] = ()
    env = {"GIT_CEILING_DIRECTORIES": str(tmp_path)}
    match where:
        case "given":
            (tmp_path / ".adjourn").mkdir(mode=0o700)
            options, wanted = ("--store", "x/../mine"), deep / "mine"
        case "variable":
            env["ADJOURN_STORE"], wanted = str(tmp_path / "variable"), tmp_path / "variable"
        case "nearest":
            shell.adjourn("run", "--", "true", cwd=tmp_path / "a")
            wanted = tmp_path / "a" / ".adjourn"
        case "git root":
            shell.run("git", "init", "-q", str(tmp_path / "a"))
            wanted = tmp_path / "a" / ".adjourn"
        case "empty .git":  # what a sandbox leaves behind is no repository
            (tmp_path / "a" / ".git").mkdir()
            wanted = deep / ".adjourn"
        case _:
            wanted = deep / ".adjourn"
    shell.adjourn("run", *options, "--", "true", cwd=deep, env=env)
    assert (wanted / "adjourn.db").exists()
    assert (
        len(shell.adjourn("tasks", *options, "--output", "json", cwd=deep, env=env).doc["tasks"])
        >= 1
    )
