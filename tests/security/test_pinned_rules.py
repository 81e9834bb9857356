"""An always-allow rule holds for the content that was there when it was made, or says that it does not look at it."""

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
