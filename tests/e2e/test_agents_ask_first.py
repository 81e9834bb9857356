"""Agents of others ask first; who wants no questions says so; one word is never a prompt."""

import json

import pytest

from tests.e2e.shell import Shell

ENVIRONMENT = {
    "ADJOURN_CLAUDE": "/no/such/claude",
    "ADJOURN_CODEX": "/no/such/codex",
    "ADJOURN_AGENT_MODEL": "openai:none",
    "ADJOURN_AGENT_BASE_URL": "http://127.0.0.1:9",
    "ADJOURN_AGENT_TRIES": "1",
    "OPENAI_API_KEY": "none",
}
LINE = "nobody is asked"


@pytest.mark.parametrize(
    ("words", "says", "gate"),
    [
        (["--runner", "claude"], "", "calls"),
        (["--runner", "codex"], "", "calls"),
        (["--runner", "claude", "--no-pause-on-approval"], "", "free calls"),
        ([], "", "free calls"),
        ([], "environment", "calls"),
        ([], "config", "calls"),
        (["--no-pause-on-approval"], "config", "free calls"),
    ],
    ids=str,
)
def test_who_asks_first_and_who_is_told_that_nobody_is_asked(
    shell: Shell, words: list[str], says: str, gate: str
) -> None:
    """A-R78, part 2 row 32."""
    env = {**ENVIRONMENT, **({"ADJOURN_PAUSE_ON_APPROVAL": "1"} if says == "environment" else {})}
    if says == "config":
        place = shell.place / ".config" / "adjourn"
        place.mkdir(parents=True)
        (place / "config.toml").write_text("pause_on_approval = true\n")
    done = shell.adjourn("run", *words, "do it", expect=None, env=env)
    created = json.loads(shell.adjourn("audit", "export").out.splitlines()[0])
    assert created["facts"]["gate"] == gate
    assert done.err.count(LINE) == (gate == "free calls")


def test_the_users_config_gates_commands_and_plans_too(shell: Shell) -> None:
    place = shell.place / ".config" / "adjourn"
    place.mkdir(parents=True)
    (place / "config.toml").write_text("pause_on_approval = true\n")
    shell.adjourn("run", "--", "touch", "made", expect=10)
    plan = '[[task]]\nid = "a"\ncommand = ["touch", "made"]\n'
    (shell.place / "plan.toml").write_text(plan)
    shell.adjourn("execute", expect=10)
    assert not (shell.place / "made").exists()
    shell.adjourn("run", "--no-pause-on-approval", "--", "touch", "made")
    (place / "config.toml").write_text('pause_on_approval = "often"\n')
    assert "must be true or false" in shell.adjourn("run", "--", "true", expect=2).err


@pytest.mark.parametrize("name", ["./deploy.sh", "deploy", "--runner=claude"])
def test_one_word_is_never_a_prompt_and_what_was_meant_is_said(shell: Shell, name: str) -> None:
    shell.script("touch made", name="deploy.sh")
    words = [name, "deploy"] if name.startswith("-") else [name]
    told = shell.adjourn("run", *words, expect=2, env=ENVIRONMENT)
    assert "is one word" in told.err
    wanted = "adjourn -a deploy --runner claude" if name.startswith("-") else f"run -- {name}"
    assert wanted in told.err
    assert not (shell.place / "made").exists()


def test_after_a_one_word_is_a_prompt_and_so_is_prose_without_blanks(shell: Shell) -> None:
    for words in (["-a", "deploy"], ["run", "部署到生产环境"]):
        told = shell.adjourn(*words, expect=None, env=ENVIRONMENT)
        assert "is one word" not in told.err
    assert len(shell.json("tasks")["tasks"]) == 2
