"""How Claude Code is started and resumed.

What a task keeps of it, and the command lines that are made of that.
"""

import os
import shlex
from collections.abc import Mapping, Sequence
from uuid import UUID

import msgspec

from adjourn.core.errors import CannotResume, Misuse
from adjourn.ports.runner import NO_TABLE, ConfigTable
from adjourn.runners.options import split

PROVIDER = "claude"
VARIABLE = "ADJOURN_CLAUDE"  # the variable that says which program it is
OLDEST = (2, 1, 89)  # the first that can defer a call
# The first that takes a broken hook for a no, whatever its permission mode
OLDEST_THAT_BLOCKS = (2, 1, 295)
HOOK_SECONDS = 900
LONGEST_ARGUMENT = 100_000  # bytes; the kernel takes no word of more than 128 KiB

# They wake up by themselves, or run on after the turn that started them has ended: a deferred call
# would be lost.
_WITHOUT = ("ScheduleWakeup", "CronCreate", "CronDelete", "CronList", "Monitor", "Workflow")
# Change the mode or the directory under our feet
_ELSEWHERE = ("EnterPlanMode", "ExitPlanMode", "EnterWorktree", "ExitWorktree")
_ENVIRONMENT = {"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1"}
_READS_ITS_MEMORY = {"CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD": "1"}
# Each switches hooks off, and can be set as a variable
_WITHOUT_HOOKS = ("CLAUDE_CODE_SAFE_MODE", "CLAUDE_CODE_SIMPLE")
_OF_AN_OUTER_SESSION = (
    "CLAUDECODE",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_SSE_PORT",
    *_WITHOUT_HOOKS,
)
_OF_ANOTHER_RESUME = "CLAUDE_CODE_RESUME_"
# How every answer of ours begins
_SAYS = '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"'
# What a hook of ours says before anything else happens
LISTENS = "adjourn holds the calls of this session"

# Settings of the workspace run commands by themselves and change calls that were approved. Its
# memory is words, and is read.
_OF_THE_PERSON = ("--setting-sources", "user", "--add-dir", ".")

# What would take the gate away, or what adjourn says itself.
_REFUSED = frozenset(
    {
        "--",
        "--allow-dangerously-skip-permissions",
        "--bare",
        "--bg",
        "--background",
        "--chrome",
        "--cloud",
        "--continue",
        "--dangerously-skip-permissions",
        "--desktop",
        "--environment",
        "--fork-session",
        "--from-pr",
        "--help",
        "--ide",
        "--include-hook-events",
        "--include-partial-messages",
        "--init-only",
        "--input-format",
        "--maintenance",
        "--no-session-persistence",
        "--output-format",
        "--permission-mode",
        "--permission-prompt-tool",
        "--permission-prompts",
        "--print",
        "--remote",
        "--remote-control",
        "--replay-user-messages",
        "--resume",
        "--resume-session-at",
        "--rewind-files",
        "--safe-mode",
        "--sdk-url",
        "--session-id",
        "--setting-sources",
        "--settings",
        "--teleport",
        "--tmux",
        "--version",
        "--worktree",
    }
)


class ClaudeSetup(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """What a task keeps of how its Claude Code is started.

    Every resume says the same again, for the program restores nothing.
    """

    program: str = "claude"
    arguments: tuple[str, ...] = ()
    model: str | None = None
    trust_project: bool = False  # whether what the workspace's own .claude and .mcp.json say counts


def read_options(
    given: Mapping[str, str], environment: Mapping[str, str], _: ConfigTable = NO_TABLE
) -> ClaudeSetup:
    """Return the setup that options ask for. The environment may name the program."""
    unknown = given.keys() - {"program", "model", "arguments", "trust-project"}
    if unknown:
        way_out = "--option program=PATH, model=NAME, arguments=WORDS, trust-project=true"
        raise Misuse(f"Claude Code has no option {min(unknown)}", way_out=way_out)
    setup = ClaudeSetup(
        program=given.get("program") or environment.get(VARIABLE) or "claude",
        arguments=tuple(split(given.get("arguments", ""))),
        model=given.get("model") or None,
        trust_project=_is_yes(given.get("trust-project", "false")),
    )
    require_fitting(setup)
    return setup


def _is_yes(text: str) -> bool:
    if text not in {"true", "false"}:
        raise Misuse(
            f"trust-project is true or false, not {text}", way_out="--option trust-project=true"
        )
    return text == "true"


def require_fitting(setup: ClaudeSetup) -> None:
    """Refuse arguments that would take the gate away or choose another session."""
    for word in setup.arguments:
        if word.partition("=")[0] in _REFUSED or _is_short_cluster(word):
            sentence = (
                f"Claude Code cannot be given {word} here: adjourn holds its gate and chooses "
                "its session"
            )
            raise Misuse(sentence, way_out="leave it out")


def _is_short_cluster(word: str) -> bool:
    """Say whether a word holds short options.

    `-c` continues, `-r` resumes, and several can stand behind one dash.
    """
    return word.startswith("-") and not word.startswith("--") and word != "-"


def start_argv(setup: ClaudeSetup, *, session: str, prompt: str, hook: str) -> list[str]:
    """Return the command line of a new session, whose id is chosen before it begins."""
    return [*_common(setup, hook=hook), f"--session-id={plain_ref(session)}", *_prompt(prompt)]


def resume_argv(setup: ClaudeSetup, *, ref: str, prompt: str | None, hook: str) -> list[str]:
    """Return the command line that goes on with a session.

    Its id, or the path of its file; nothing is guessed.
    """
    checked = ref if os.path.isabs(ref) and plain_ref(_stem(ref)) else plain_ref(ref)
    return [
        *_common(setup, hook=hook),
        f"--resume={checked}",
        *(_prompt(prompt) if prompt is not None else ()),
    ]


def _stem(path: str) -> str:
    return os.path.basename(path).removesuffix(".jsonl")


def plain_ref(ref: str) -> str:
    """Return a session's id if it is nothing but one.

    As a word of its own it could be an option.
    """
    try:
        is_plain = str(UUID(ref)) == ref
    except ValueError:
        is_plain = False
    if not is_plain:
        raise CannotResume(f"{ref!r} is not the id of a Claude Code session")
    return ref


def _common(setup: ClaudeSetup, *, hook: str) -> list[str]:
    """Return what start and resume have in common.

    Ours stands last: where two say something different, the last one counts.
    """
    return [
        setup.program,
        *setup.arguments,
        *(["--model", setup.model] if setup.model else []),
        "--print",
        *(
            "--output-format",
            "stream-json",
            "--verbose",
            "--include-partial-messages",
            "--include-hook-events",
        ),
        *("--permission-mode", "dontAsk"),
        *("--permission-prompt-tool", "stdio"),  # without a host there is no AskUserQuestion
        *("--disallowedTools", ",".join((*_WITHOUT, *_ELSEWHERE))),
        *(() if setup.trust_project else _OF_THE_PERSON),
        *("--settings", settings(hook)),
    ]


def _prompt(prompt: str) -> Sequence[str]:
    """Return the words as the last argument; too long ones go through stdin."""
    return ("--", prompt) if fits_a_word(prompt) else ()


def fits_a_word(prompt: str) -> bool:
    """Say whether a prompt can be an argument."""
    return len(prompt.encode()) <= LONGEST_ARGUMENT


def settings(hook: str) -> str:
    """Return the settings: a hook on every tool, whose failure is a no.

    No other settings can switch it off. A second hook shows that hooks are on before the model is
    asked for anything; it prints where the model does not read.
    """
    command = {"type": "command", "command": hook, "timeout": HOOK_SECONDS, "onFailure": "block"}
    shows = {"type": "command", "command": f"echo '{LISTENS}' >&2"}
    hooks = {
        "PreToolUse": [{"matcher": "*", "hooks": [command]}],
        "SessionStart": [{"hooks": [shows]}],
    }
    variables = dict.fromkeys(_WITHOUT_HOOKS, "0")
    return msgspec.json.encode(
        {"disableAllHooks": False, "env": variables, "hooks": hooks}
    ).decode()


def hook_command(adjourn: str) -> str:
    """Return the hook's command: all but a whole decision ends in exit code 2, which always blocks.

    Claude Code takes silence, and what it cannot read, for no opinion: its own rules would count.
    """
    decisions = "|".join(f"'{_SAYS}{decision}\"'*'}}'" for decision in ("allow", "deny", "defer"))
    prints = f'case $answer in {decisions}) printf %s "$answer";; *) false;; esac'
    return f"answer=$({shlex.quote(adjourn)} _hook) && {prints} || exit 2"


def environment(setup: ClaudeSetup, inherited: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of Claude Code.

    Nothing of a session that adjourn itself may run in.
    """
    ours = _ENVIRONMENT | ({} if setup.trust_project else _READS_ITS_MEMORY)
    return {name: value for name, value in inherited.items() if not _is_of_another(name)} | ours


def _is_of_another(name: str) -> bool:
    return name in _OF_AN_OUTER_SESSION or name.startswith(_OF_ANOTHER_RESUME)


def version_of(text: str) -> tuple[int, ...]:
    """Read `2.1.325 (Claude Code)`; nothing if it is something else."""
    number = text.partition(" ")[0].strip()
    parts = number.split(".")
    return (
        tuple(int(part) for part in parts)
        if all(part.isascii() and part.isdigit() for part in parts)
        else ()
    )


def dotted(version: tuple[int, ...]) -> str:
    """Return a version as people write it."""
    return ".".join(map(str, version))
