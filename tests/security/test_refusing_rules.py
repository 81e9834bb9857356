"""Words in between, other names and wrappers take no command past a rule that asks or forbids."""

import shlex
import time
from collections.abc import Callable

import pytest

from adjourn.core.policy.judge import judge
from adjourn.core.policy.judgement import Action
from adjourn.core.policy.opening import Surroundings
from tests.unit.policies import judged, policy, seen

RULES = """
[[rule]]
args = ["{program}", "**"]
action = "auto"
dirs = ["/**"]
[[rule]]
args = [{words}, "**"]
action = "never"
"""


def rules(*words: str) -> str:
    """Return a policy that lets a program do everything but what these words say."""
    return RULES.format(program=words[0], words=", ".join(f'"{word}"' for word in words))


@pytest.mark.parametrize(
    ("forbidden", "command"),
    [
        ("git push", "git -C . push"),
        ("git push", "git -C . --no-pager push origin main"),
        ("git push", "git -c user.name=x push"),
        ("git push", "git --git-dir=.git push"),
        ("git push", "git --git-dir .git --work-tree . push"),
        ("git push", "/usr/bin/git -P push"),
        ("git push", "git-push origin"),
        ("git push", "/usr/lib/git-core/git-push origin"),
        ("git push", "git -c alias.x=push x origin"),
        ("git push", "git -c Alias.X=push x origin"),
        ("git push", "git -c alias.a=status -c alias.x=push x"),
        ("git remote add", "git -c alias.x=remote\\ add x"),
        ("git push --force", "git push origin main --force"),
        ("git push --force", "git -C . push -v origin --force main"),
        ("docker rm", "docker -H tcp://host:1 rm box"),
        ("docker compose down", "docker compose -f x.yml down"),
        ("kubectl delete", "kubectl -n prod delete pod x"),
        ("kubectl delete", "kubectl --context prod --namespace=prod delete pod x"),
        ("terraform apply", "terraform -chdir=prod apply"),
        ("aws s3 rm", "aws --profile prod s3 --region eu rm s3://x"),
        ("gh pr merge", "gh -R owner/name pr -q merge 1"),
        ("rm -rf", "rm -v / -rf"),
    ],
)
def test_options_cannot_take_a_command_past_a_rule_that_forbids_it(
    forbidden: str, command: str
) -> None:
    words = [word.replace("\0", " ") for word in command.replace("\\ ", "\0").split()]
    assert judged(rules(*forbidden.split()), *words).action is Action.NEVER


@pytest.mark.parametrize(
    "wrapper",
    [
        "env",
        "env -i A=b",
        "env -u A",
        "sudo",
        "sudo -u root -E",
        "nice -n 5",
        "nice -5",
        "timeout 5",
        "timeout -s KILL 5s",
        "xargs -n 1",
        "command",
        "exec",
        "nohup",
        "stdbuf -oL",
        "busybox",
        "setsid -w",
        "strace -f",
        "uv run",
        "npx",
        "docker run -it box",
        "kubectl exec box --",
        "direnv exec .",
        "ssh host",
        "find . -exec",
        "gosu root",
        "su-exec root",
        "setarch x86_64",
        "linux64",
        "systemd-inhibit --what=idle",
        "dbus-launch",
        "start-stop-daemon --start --exec",
        "chronic",
        "rustup run stable",
        "/lib64/ld-linux-x86-64.so.2",
    ],
)
@pytest.mark.parametrize("is_text", [False, True], ids=["words", "shell text"])
def test_a_wrapper_cannot_take_a_command_past_a_rule_that_forbids_it(
    wrapper: str, *, is_text: bool
) -> None:
    program, *_ = wrapper.split()
    policy_text = (
        rules("git", "push")
        + f'[[rule]]\nargs = ["{program}", "**"]\naction = "auto"\ndirs = ["/**"]\n'
    )
    command = f"{wrapper} git -C . push origin"
    words = ["sh", "-c", command] if is_text else command.split()
    assert judged(policy_text, *words).action is Action.NEVER


@pytest.mark.parametrize(
    "command",
    [
        ("sh", "-c", "git -C . push"),
        ("bash", "-lc", "git -C . push"),
        ("busybox", "sh", "-c", "git -C . push"),
        ("env", "-S", "git -C . push"),
        ("git", "-c", "alias.x=!git -C . push", "x"),
        ("git", "-c", "alias.x=!sh -c 'git push'", "x"),
        ("git", "submodule", "foreach", "git -C . push"),
        ("git", "rebase", "-x", "git -C . push", "main"),
        ("git", "bisect", "run", "git", "-C", ".", "push"),
        ("git", "-c", "core.pager=git push", "log"),
        ("docker", "run", "box", "sh", "-c", "git push"),
        ("tar", "--to-command=git push", "-xf", "x"),
        ("tar", "cf", "x", "--checkpoint-action=exec=git push", "x"),
        ("sed", "1e git push", "x"),
        ("vim", "-c", "!git push"),
        ("less", "+!git push"),
        ("man", "-P", "git push", "x"),
        ("zip", "x", "y", "-T", "-TT", "git push"),
        ("rsync", "-e", "git push", "a", "b:"),
        ("make", "SHELL=git push"),
    ],
    ids=" ".join,
)
def test_text_for_another_shell_cannot_hide_a_command_that_is_forbidden(
    command: tuple[str, ...],
) -> None:
    assert judged(rules("git", "push"), *command).action is Action.NEVER


@pytest.mark.parametrize(
    "words",
    [
        ("git", "p", "origin"),
        ("git", "-c", "alias.x=!anything", "x"),
        ("git", "-c", "core.sshCommand=anything", "fetch"),
        ("git", "--config-env=alias.x=HOME", "x"),
        ("git", "--exec-path=/tmp/x", "status"),
        ("env", "GIT_CONFIG_COUNT=1", "git", "x"),
        ("git", "bisect", "run", "./evil"),
        ("git", "submodule", "foreach", "./evil"),
        ("git", "submodule", "--quiet", "foreach", "--recursive", "./evil"),
        ("git", "rebase", "-x", "./evil"),
        ("git", "rebase", "--exec=./evil", "main"),
        ("git", "rebase", "--exe", "./evil", "main"),
        ("git", "grep", "-O./evil", "x"),
        ("git", "grep", "--open-files-in-pager=./evil", "x"),
        ("git", "difftool", "-y", "-x", "./evil"),
        ("git", "fetch", "--upload-pack", "./evil", "."),
        ("git", "ls-remote", "--upload-p=./evil", "."),
        ("git", "clone", "-u", "./evil", "."),
        ("git", "clone", "-c", "core.fsmonitor=./evil", "."),
        ("git", "clone", "--template=./evil", "."),
        ("git", "fetch", "ext::sh -c evil"),
        ("git", "config", "core.fsmonitor", "./evil"),
        ("git", "config", "set", "alias.x", "!evil"),
        ("git", "config", "--global", "core.hooksPath", "hooks"),
        ("git", "config", "core.hooksPath=hooks", "x"),
        ("git", "hook", "run", "pre-commit"),
        ("git", "diff", "--output=.git/hooks/pre-commit"),
        ("git", "archive", "--output", ".git/hooks/pre-commit", "HEAD"),
    ],
    ids=" ".join,
)
def test_what_may_be_an_alias_does_not_run_by_a_wildcard(words: tuple[str, ...]) -> None:
    """An alias can stand in the repository's own configuration, where it means what the repository wants."""
    everything = rules("git", "push") + '[[rule]]\nargs = ["env", "**"]\naction = "auto"\n'
    assert judged(everything, *words).action is Action.PROMPT
    exact = ", ".join(f'"{word}"' for word in words)
    assert (
        judged(f'{everything}[[rule]]\nargs = [{exact}]\naction = "auto"\n', *words).action
        is Action.AUTO
    )


@pytest.mark.parametrize(
    "command",
    [
        "git status",
        "git log --grep push",
        "git commit -m push",
        "git stash push",
        "git log push",
        "git -C . log",
        "git config user.name",
        "git config --get core.fsmonitor",
        "git config list",
        "git bisect good",
        "git submodule update",
        "git rebase main",
        "git log --oneline --output-indicator-new=x",
        "git grep -n x",
        "git clone https://example.org/x",
    ],
)
def test_what_only_speaks_of_a_forbidden_word_is_not_forbidden(command: str) -> None:
    assert judged(rules("git", "push"), *command.split()).action is Action.AUTO


def test_a_commit_message_is_no_command() -> None:
    assert (
        judged(rules("git", "push"), "git", "commit", "-m", "do not git push this").action
        is Action.AUTO
    )


def test_a_subcommand_that_a_rule_names_is_no_wildcard() -> None:
    assert (
        judged(
            '[[rule]]\nargs = ["git", "lfs", "**"]\naction = "auto"\n', "git", "lfs", "pull"
        ).action
        is Action.AUTO
    )


def test_rules_that_let_pass_take_no_option_in_between() -> None:
    text = '[[rule]]\nargs = ["git", "status"]\naction = "auto"\n'
    assert judged(text, "git", "status").action is Action.AUTO
    for words in (
        ("git", "-C", ".", "status"),
        ("git", "--no-pager", "status"),
        ("git", "-c", "a.b=c", "status"),
    ):
        assert judged(text, *words).action is Action.PROMPT


def test_a_shell_tool_of_an_agent_cannot_pass_either() -> None:
    found = judge(
        policy(rules("git", "push")),
        "Bash",
        {"command": "git -C . push"},
        surroundings=seen(),
        workspace="/project",
        now=0,
    )
    assert found.action is Action.NEVER


PADDED: dict[str, Callable[[str], tuple[str, ...]]] = {
    "text that is not understood": lambda pad: ("sh", "-c", f"x=1; git {pad} push $y"),
    "substitution": lambda pad: ("sh", "-c", f"echo $(git {pad} push)"),
    "text that is understood": lambda pad: ("sh", "-c", f"git {pad} push"),
    "another shell": lambda pad: ("fish", "-lc", f"git {pad} push"),
    "words of a wrapper": lambda pad: ("xargs", "-n", "1", "git", *pad.split(), "push"),
    "options of a wrapper": lambda pad: ("sudo", *pad.split(), "git", "push"),
    "words of a starter": lambda pad: ("docker", "run", "box", "git", *pad.split(), "push"),
    "find": lambda pad: ("find", ".", "-exec", "git", *pad.split(), "push", ";"),
    "wrappers": lambda pad: (*("env" for _ in pad.split()), "git", "push"),
    "other wrappers": lambda pad: (*("nice" for _ in pad.split()), "xargs", "git", "push"),
    "shells": lambda pad: (*("sh" for _ in pad.split()), "-c", "git push"),
    "many beginnings": lambda pad: ("xargs", *("git" for _ in pad.split()), "push"),
    "many texts": lambda pad: ("sh", "-c", "$x; " * len(pad.split()) + "git push"),
}


@pytest.mark.parametrize("count", [1, 40, 70, 3_000])
@pytest.mark.parametrize("where", PADDED)
def test_no_padding_takes_a_command_past_a_rule_that_forbids_it(where: str, count: int) -> None:
    command = PADDED[where](" ".join(f"-c a{number}=b" for number in range(count)))
    assert judged(rules("git", "push"), *command).action is Action.NEVER


def test_shells_that_are_nested_too_deep_hide_nothing() -> None:
    words: tuple[str, ...] = ("git", "push")
    for _ in range(10):
        words = ("sh", "-c", shlex.join(words))
        assert judged(rules("git", "push"), *words).action is Action.NEVER


@pytest.mark.parametrize(
    "text",
    [
        "git \\\n  push",
        "gi\\\nt push",
        "x=1; git${IFS}push",
        "git$IFS-C$IFS.${IFS}push",
        "x=1; g'i't p\"us\"h",
    ],
)
def test_no_spelling_takes_a_command_past_a_rule_that_forbids_it(text: str) -> None:
    assert judged(rules("git", "push"), "sh", "-c", text).action is Action.NEVER


@pytest.mark.parametrize("count", [1, 70])
@pytest.mark.parametrize("is_text", [False, True], ids=["words", "shell text"])
def test_a_rule_that_forbids_a_path_also_forbids_the_name_that_may_lead_there(
    count: int, *, is_text: bool
) -> None:
    text = rules("git", "push") + '[[rule]]\nargs = ["/opt/bin/drop", "**"]\naction = "never"\n'
    padding = [f"-x{number}" for number in range(count)]
    words = (
        ["sh", "-c", f"x=1; env {' '.join(padding)} drop all"]
        if is_text
        else ["xargs", *padding, "drop", "all"]
    )
    found = judge(
        policy(text),
        "command",
        {"argv": words},
        surroundings=Surroundings(),
        workspace="/project",
        now=0,
    )
    assert found.action is Action.NEVER


def test_long_commands_are_judged_in_time() -> None:
    """The work grows with the length, not with its square.

    An agent cannot hold up whoever judges it.
    """
    found = policy(rules("git", "push") + rules("docker", "rm"))
    for words in (
        ("xargs", *("git", "-x") * 20_000, "push"),
        ("sh", "-c", "$x " + "git -x " * 20_000 + "push"),
        ("sh", "-c", "$x" + " env" * 20_000 + " git push"),
        (*("env",) * 20_000, "git", "push"),
        ("sh", "-c", "$x; " * 20_000 + "git push"),
    ):
        began = time.process_time()
        assert judged(found, *words).action is Action.NEVER
        assert time.process_time() - began < 5
