"""An auto rule lets nothing run in a directory, or outside of a sandbox, that its writer did not think of."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.claude.scene import Scene as ClaudeScene
from tests.claude.scene import bash
from tests.codex.scene import SCRIPTING_MODEL, script
from tests.codex.scene import Scene as CodexScene
from tests.codex.scene import shell as command
from tests.e2e.shell import Document, Shell
from tests.model.script import ToolUse, Turn
from tests.needs import needs

DONE = Turn(text="All done.")
GIT_STATUS = '[[rule]]\nargs = ["git", "status"]\naction = "auto"\n'


def plant_hostile_repository(place: Path) -> None:
    """Make a repository whose configuration has `git status` run a command that leaves a trace above it."""
    needs("git")
    place.mkdir()
    subprocess.run(["git", "init", "-q", str(place)], check=True)
    hook = f"touch {place.parent}/hostile-code-ran"
    subprocess.run(["git", "-C", str(place), "config", "core.fsmonitor", hook], check=True)


def is_hostile_code_run(place: Path) -> bool:
    """Say whether the planted command has run."""
    return (place / "hostile-code-ran").exists()


@pytest.mark.parametrize(
    "details",
    [
        {"workdir": "vendored"},
        {"workdir": "vendored", "sandbox_permissions": "require_escalated"},
        {"workdir": "./vendored/../vendored"},
    ],
    ids=["in its sandbox", "outside of its sandbox", "by a detour"],
)
@pytest.mark.parametrize("way", ["app-server", "exec"])
def test_codex_cannot_run_an_auto_command_in_a_hostile_directory(
    codex: CodexScene, details: dict[str, str], way: str
) -> None:
    plant_hostile_repository(codex.work / "vendored")
    codex.allow(GIT_STATUS)
    with codex.model([Turn(calls=(command("git status", name="call_A", **details),)), DONE]):
        codex.run(expect=None, options=("--option", f"way={way}"))
    assert not is_hostile_code_run(codex.work)
    (ask,) = codex.asks()
    assert ask["tool_call_id"] == "call_A"
    assert "vendored" in codex.shown()


def test_codex_cannot_leave_its_sandbox_by_an_auto_rule(codex: CodexScene) -> None:
    codex.allow('[[rule]]\nargs = ["touch", "**"]\naction = "auto"\n')
    outside = codex.home / "outside.txt"
    leaves = command(f"touch {outside}", name="call_A", sandbox_permissions="require_escalated")
    with codex.model([Turn(calls=(leaves,)), DONE]):
        codex.run()
        assert not outside.exists()
        assert (
            "lets nothing run outside of the sandbox"
            in codex.shell.adjourn(*explain_shell("touch x", sandbox="none")).out
        )
        codex.allow('[[rule]]\nargs = ["touch", "**"]\naction = "auto"\noutside_sandbox = true\n')
        codex.run(expect=0)
    assert outside.exists()


def explain_shell(command: str, **more: str) -> list[str]:
    """Return the words that explain a command of an agent's shell."""
    return [
        "policy",
        "explain",
        "--tool",
        "shell",
        "--args",
        json.dumps({"command": command, **more}),
    ]


def test_a_script_of_codex_cannot_hide_its_directory_from_an_auto_rule(codex: CodexScene) -> None:
    """What a script of the model calls reaches the hook without its `workdir`."""
    plant_hostile_repository(codex.work / "vendored")
    codex.allow(GIT_STATUS + "outside_sandbox = true\n")
    text = 'await tools.exec_command({cmd: "git status", workdir: "vendored"});'
    with codex.model([Turn(calls=(script(text, name="call_A"),)), DONE], model=SCRIPTING_MODEL):
        codex.run(expect=None)
    assert not is_hostile_code_run(codex.work)
    assert len(codex.asks()) == 1


def test_what_codex_runs_in_another_directory_is_what_was_shown_for_it(codex: CodexScene) -> None:
    (codex.work / "services").mkdir()
    turn = Turn(calls=(command("touch made.txt", name="call_A", workdir="services"),))
    with codex.model(
        [turn, Turn(calls=(command("touch made.txt", name="call_B", workdir="services"),)), DONE]
    ):
        codex.run()
        assert f"{codex.work}/services" in codex.shown()
        codex.approve_all()
        codex.resume()
    assert (codex.work / "services" / "made.txt").exists()


@pytest.mark.parametrize(
    "dirs", ["", 'dirs = ["docs/**"]\n'], ids=["the root", "another directory"]
)
def test_claude_cannot_run_an_auto_command_in_a_hostile_directory(
    claude: ClaudeScene, dirs: str
) -> None:
    plant_hostile_repository(claude.work / "vendored")
    claude.let_pass(f'args = ["git", "status"]\n{dirs}')
    moves = Turn(calls=(bash("cd vendored", name="toolu_A"),))
    looks = Turn(calls=(bash("git status", name="toolu_B"),))
    with claude.model([moves, looks, DONE]):
        claude.run()
        claude.approve_all()
        claude.resume(expect=10)
    assert not is_hostile_code_run(claude.work)
    (ask,) = claude.asks()
    assert ask["tool_call_id"] == "toolu_B"


def test_claude_cannot_leave_its_sandbox_by_an_auto_rule(claude: ClaudeScene) -> None:
    claude.let_pass('args = ["touch", "**"]')
    call = ToolUse(
        name="Bash",
        arguments={
            "command": "touch made.txt",
            "description": "make it",
            "dangerouslyDisableSandbox": True,
        },
        id="toolu_A",
    )
    with claude.model([Turn(calls=(call,)), DONE]):
        claude.run()
    assert not (claude.work / "made.txt").exists()


# --- what a rule says of directories --------------------------------------------------------------


@pytest.mark.parametrize(
    ("dirs", "directory", "holds"),
    [
        ("", ".", True),
        ("", "services/api", False),
        ("", "/", False),
        ('["."]', ".", True),
        ('["**"]', ".", True),
        ('["**"]', "services/api", True),
        ('["**"]', "/", False),
        ('["**"]', "link-to-root", False),
        ('["services/*"]', "services/api", True),
        ('["services/*"]', "services", False),
        ('["services/*"]', "services/api/deep", False),
        ('["services/**"]', "services/api/deep", True),
        ('["services/**"]', "services/link-to-vendored", False),
        ('["services/**"]', ".", False),
        ('["services/**"]', "services/../vendored", False),
        ('["/**"]', "/", True),
        ('["/**"]', "link-to-root", True),
    ],
)
@pytest.mark.parametrize("by", ["cwd", "option"])
def test_a_rule_does_not_hold_in_a_directory_that_it_does_not_name(
    shell: Shell, dirs: str, directory: str, by: str, *, holds: bool
) -> None:
    for place in ("services/api/deep", "vendored"):
        (shell.place / place).mkdir(parents=True)
    (shell.place / "link-to-root").symlink_to("/")
    (shell.place / "services" / "link-to-vendored").symlink_to("../vendored")
    if by == "option":  # git starts in the root, and then goes where the option says
        dirs = dirs.replace("]", ', "."]')
        holds = holds or directory == "."
    write_policy(
        shell,
        f'[[rule]]\nargs = ["git", "**"]\naction = "auto"\n{f"dirs = {dirs}" if dirs else ""}\n',
    )
    words = (
        ["--cwd", directory, "--", "git", "status"]
        if by == "cwd"
        else ["--", "git", "-C", directory, "status"]
    )
    found = explained(shell, *words)
    assert (found["action"] == "auto") is holds, found["why"]


def explained(shell: Shell, *words: str) -> Document:
    """Return what the policies make of a command."""
    return shell.adjourn("policy", "explain", "--output", "json", *words).doc


def write_policy(shell: Shell, text: str) -> None:
    """Write the user's own policy."""
    place = Path(shell.environment["XDG_CONFIG_HOME"]) / "adjourn"
    place.mkdir(parents=True, exist_ok=True)
    (place / "policy.toml").write_text(text)


@pytest.mark.parametrize(
    ("words", "action"),
    [
        (("make", "-C", "vendored"), "auto"),
        (("make", "-Cvendored"), "auto"),
        (("make", "--directory=vendored"), "auto"),
        (("git", "--git-dir", "vendored/.git", "status"), "auto"),
        (("git", "--work-tree=vendored", "status"), "auto"),
        (("terraform", "-chdir=vendored", "plan"), "auto"),
        (("npm", "--prefix", "vendored", "test"), "auto"),
        (("sh", "-c", "make -C vendored"), "auto"),
        (("nohup", "make", "-C", "vendored"), "auto"),
        (("sh", "-c", "cd vendored && make"), "prompt"),
        (("env", "-C", "vendored", "make"), "prompt"),
    ],
)
def test_an_option_cannot_take_an_auto_rule_to_another_directory(
    shell: Shell, tmp_path_factory: pytest.TempPathFactory, words: tuple[str, ...], action: str
) -> None:
    """The action is what comes of it where the rule names the directory."""
    (shell.place / "vendored").mkdir()
    programs = tmp_path_factory.mktemp("programs")
    for name in ("env", "git", "make", "nohup", "npm", "terraform"):
        (programs / name).write_text("#!/bin/sh\n")
        (programs / name).chmod(0o755)
    shell.environment["PATH"] = f"{programs}:{shell.environment['PATH']}"
    rules = "".join(
        f'[[rule]]\nargs = ["{each.name}", "**"]\naction = "auto"\n' for each in programs.iterdir()
    )
    write_policy(shell, rules)
    assert explained(shell, "--", *words)["action"] == "prompt"
    write_policy(shell, rules.replace('"auto"', '"auto"\ndirs = ["vendored/**", "."]'))
    assert explained(shell, "--", *words)["action"] == action


@pytest.mark.parametrize(
    ("says", "problem"),
    [
        ('action = "auto"\ndirs = []', "4:8: `dirs` must be a list of patterns"),
        ('action = "auto"\ndirs = "**"', "4:8: `dirs` must be a list of patterns"),
        ('action = "auto"\ndirs = ["../x"]', "4:9: a directory is a pattern"),
        ('action = "auto"\ndirs = ["~/x"]', "4:9: a directory is a pattern"),
        ('action = "auto"\ndirs = [1]', "4:9: a directory is a pattern"),
        ('action = "auto"\ndirs = ["a/[x"]', "4:12: the pattern is invalid"),
        (
            'action = "auto"\noutside_sandbox = "yes"',
            "4:19: `outside_sandbox` must be true or false",
        ),
        ('action = "never"\ndirs = ["**"]', "4:1: `dirs` is for rules that say `auto` or `effect`"),
        (
            'action = "prompt"\noutside_sandbox = true',
            "4:1: `outside_sandbox` is for rules that say",
        ),
    ],
)
def test_a_rule_that_says_where_in_a_wrong_way_does_not_count(
    shell: Shell, says: str, problem: str
) -> None:
    write_policy(shell, f'[[rule]]\nargs = ["ls"]\n{says}\n')
    assert problem in shell.adjourn("policy", "check", expect=2).out
    shell.adjourn("run", "--", "ls", expect=2)


def test_a_project_cannot_say_where_a_rule_holds(shell: Shell) -> None:
    (shell.place / ".adjourn").mkdir(mode=0o700)
    (shell.place / ".adjourn" / "policy.toml").write_text(
        '[[rule]]\nargs = ["ls"]\naction = "auto"\ndirs = ["/**"]\n'
    )
    assert "a project's policy may not say `auto`" in shell.adjourn("policy", "check", expect=2).out
