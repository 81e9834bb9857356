"""An always-allow rule holds for the content that was there when it was made, or says that it does not look at it."""

import pytest

from tests.e2e.shell import ADJOURN, Shell


def _action(shell: Shell, *argv: str) -> str:
    return str(
        shell.run(
            str(ADJOURN), "policy", "explain", "--output", "json", "--", *argv, expect=None
        ).doc["action"]
    )


def test_a_rule_does_not_hold_for_a_script_with_other_content(shell: Shell) -> None:
    script = shell.script("echo checked", name="check.sh")
    done = shell.adjourn("rules", "add", "--", script)
    assert f"content  {shell.place}/check.sh sha256:" in done.out
    assert _action(shell, script) == "auto"
    shell.script("echo evil", name="check.sh")
    assert _action(shell, script) == "prompt"
    shell.json("run", "--pause-on-approval", "--", script, expect=10)
    shell.script("echo checked", name="check.sh")
    assert _action(shell, script) == "auto"


def test_a_rule_does_not_hold_for_an_interpreter_with_another_script(shell: Shell) -> None:
    (shell.place / "check.py").write_text("print('checked')\n")
    shell.adjourn("rules", "add", "--", "python3", "check.py")
    assert _action(shell, "python3", "check.py") == "auto"
    (shell.place / "check.py").write_text("print('evil')\n")
    assert _action(shell, "python3", "check.py") == "prompt"


@pytest.mark.parametrize(
    "command",
    [
        "./link.sh",
        "sh ./link.sh",
        "./folder/check.sh",
        "env ./check.sh",
        "nice ./check.sh",
        "sh -c ./check.sh",
        "awk -f check.sh",
        "sed -f check.sh x",
        "make -f check.sh",
        "/lib64/ld-linux-x86-64.so.2 ./check.sh",
        "python3 -m check",
        "python3 -Im check",
    ],
)
def test_a_rule_follows_no_link_and_no_wrapper_to_other_content(shell: Shell, command: str) -> None:
    """However the script is named: other content, or another script behind a link, is asked about."""
    shell.script("echo checked", name="check.sh")
    (shell.place / "check.py").write_text("print('checked')\n")
    for name in ("one", "two"):
        (shell.place / name).mkdir()
        shell.script(f"echo {name}", name=f"{name}/check.sh")
    (shell.place / "folder").symlink_to("one")
    (shell.place / "link.sh").symlink_to("check.sh")
    words = command.split()
    shell.adjourn("rules", "add", "--", *words)
    assert _action(shell, *words) == "auto"
    for link, target in (("folder", "two"), ("link.sh", "two/check.sh")):
        (shell.place / link).unlink()
        (shell.place / link).symlink_to(target)
    (shell.place / "check.py").write_text("print('evil')\n")
    shell.script("echo evil", name="check.sh")
    assert _action(shell, *words) == "prompt"


def test_a_rule_for_an_installed_module_does_not_hold_for_one_of_the_repository(
    shell: Shell,
) -> None:
    words = ("python3", "-m", "json.tool")
    shell.adjourn("rules", "add", "--", *words)
    assert _action(shell, *words) == "auto"
    (shell.place / "json").mkdir()
    (shell.place / "json" / "tool.py").write_text("print('evil')\n")
    assert _action(shell, *words) == "prompt"


def test_a_rule_does_not_pass_over_what_it_leaves_open(shell: Shell) -> None:
    (shell.place / "plan.txt").write_text("one")
    done = shell.adjourn("rules", "add", "--", "cat", "plan.txt")
    assert f"not pinned: {shell.place}/plan.txt" in done.out
    assert "by path" in done.out
    (shell.place / "plan.txt").write_text("two")
    assert _action(shell, "cat", "plan.txt") == "auto"


def test_a_rule_without_digests_does_not_hold_for_the_projects_own_script(shell: Shell) -> None:
    """A rule of an earlier version never looked at the content: a person is asked again."""
    script = shell.script("echo checked", name="check.sh")
    shell.adjourn("rules", "add", "--", script)
    rules = shell.place / ".config" / "adjourn" / "rules.toml"
    kept = [line for line in rules.read_text().splitlines() if not line.startswith("files")]
    rules.write_text("\n".join(kept) + "\n")
    assert _action(shell, script) == "prompt"


def test_a_rule_does_not_follow_a_script_to_another_interpreter(shell: Shell) -> None:
    """An interpreter of the project is content like the script itself."""
    interpreter = shell.place / "interpreter"
    interpreter.write_text("#!/bin/sh\necho fine\n")
    interpreter.chmod(0o755)
    script = shell.place / "check"
    script.write_text(f"#!{interpreter}\n")
    script.chmod(0o755)
    shell.adjourn("rules", "add", "--", "./check")
    assert _action(shell, "./check") == "auto"
    interpreter.write_text("#!/bin/sh\necho evil\n")
    assert _action(shell, "./check") == "prompt"
