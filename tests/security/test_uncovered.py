"""An ask does not let a person believe that it covers a file which no digest covers."""

from pathlib import Path

import pytest

from tests.agent.desk import command, desk, finish, use
from tests.codex.scene import Scene as CodexScene
from tests.codex.scene import shell as codex_shell
from tests.e2e.shell import Shell
from tests.model.script import Turn

NOT_COVERED = "Not covered by this approval:"


def shown(shell: Shell) -> str:
    """Return what a person sees of the newest task."""
    return shell.adjourn("show", shell.json("tasks")["tasks"][0]["task_id"]).out


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("cd sub && ./deploy.sh", "the shell text has `cd`, which can change what the rest means"),
        ("./deploy.sh > log", "the shell text has `>`"),
        ("$HOME/deploy.sh", "the shell text has `$`"),
    ],
)
def test_an_agents_shell_text_that_is_not_understood_does_not_look_covered(
    tmp_path: Path, text: str, why: str
) -> None:
    (tmp_path / "sub").mkdir()
    with desk(tmp_path, use(command(text, "call")), finish()) as person:
        paused = person.agent_run(expect=10)
        told = person.adjourn("show", paused["task_id"]).out
        person.adjourn("cancel", paused["task_id"])
    assert f"{NOT_COVERED} files that its shell text names ({why})" in told


def test_a_commands_shell_text_that_is_not_understood_does_not_look_covered(shell: Shell) -> None:
    shell.adjourn(
        "run", "--pause-on-approval", "--", "sh", "-c", "cd sub && ./deploy.sh", expect=10
    )
    assert f"{NOT_COVERED} files that its shell text names (" in shown(shell)


def test_an_option_that_leads_to_another_directory_is_named(shell: Shell) -> None:
    shell.adjourn(
        "run", "--pause-on-approval", "--", "git", "-C", "sub", "apply", "x.patch", expect=10
    )
    assert f"{NOT_COVERED} files that it names in sub" in shown(shell)


def test_what_codex_names_under_another_directory_is_looked_at_there(codex: CodexScene) -> None:
    """The file of the same name in the workspace is another one."""
    for place, text in ((codex.work, "harmless"), (codex.work / "sub", "hostile")):
        place.mkdir(exist_ok=True)
        (place / "deploy.sh").write_text(f"#!/bin/sh\necho {text} >> {codex.work}/made.txt\n")
        (place / "deploy.sh").chmod(0o755)
    calls = [codex_shell("./deploy.sh", name=name, workdir="sub") for name in ("call_A", "call_B")]
    with codex.model([Turn(calls=(calls[0],)), Turn(calls=(calls[1],)), Turn(text="Done.")]):
        codex.run()
        assert f"file {codex.work}/sub/deploy.sh sha256:" in codex.shown()
        assert f"file {codex.work}/deploy.sh" not in codex.shown()
        codex.approve_all()
        (codex.work / "sub" / "deploy.sh").write_text("#!/bin/sh\necho swapped >> ../made.txt\n")
        codex.resume(expect=10)
    assert codex.lines() == []
