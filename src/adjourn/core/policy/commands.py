"""Which commands a call would run, as far as its words tell.

Itself, what a shell makes of its text, what a wrapper starts.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise

import msgspec

from adjourn.core.call import COMMAND, Json, exact_word
from adjourn.core.policy.shell import MOST_PROGRAMS, Words, read_text, segments, shown_program

SHELL_TOOLS = frozenset({"run_command", "bash", "shell"})
_SHELLS = frozenset({"sh", "bash", "dash", "zsh"})
_OTHER_SHELLS = frozenset(
    {"ash", "csh", "elvish", "fish", "ksh", "mksh", "nu", "pwsh", "rbash", "tcsh", "xonsh", "yash"}
)
_DEEPEST = 8
_SHELL_SIGNS = frozenset(" \t\n{$`;|&")


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One command that would run, and those that it would run in turn."""

    words: Words
    is_shell: bool = False
    inner: tuple["Step", ...] = ()
    unread: tuple[str, ...] = ()  # what in a shell text is not understood: no rule makes up for it
    # Why it is not known what it starts: only a rule without wildcards makes up for it
    unsure: tuple[str, ...] = ()
    text: str = ""  # where further commands may hide
    # Commands may stand among its words: rules that ask or forbid are tried on these, too
    starts_more: bool = False
    # The same command as it reads without the names that it gives to others
    aliases: tuple[Words, ...] = ()
    # Words that a rule which lets pass must name itself, and why
    unnamed: tuple[tuple[int, str], ...] = ()


def steps_of(tool: str, arguments: Mapping[str, Json]) -> Step | None:
    """Return the command that a call would run, or None if the call is no command."""
    if tool == COMMAND:
        return _step_of_list(arguments.get("argv"))
    if tool.casefold() not in SHELL_TOOLS:
        return None
    match arguments.get("command"):
        case str(text):
            return _text_step((), text, depth=0)
        case given:
            return _step_of_list(given)


def words_of(tool: str, arguments: Mapping[str, Json]) -> Words:
    """Return the words that carry out a command of a call, as they are or by a shell.

    Nothing if they cannot be read.
    """
    given = arguments.get("argv" if tool == COMMAND else "command")
    return (
        ("sh", "-c", given)
        if isinstance(given, str) and tool != COMMAND
        else _step_of_list(given).words
    )


def all_steps(step: Step) -> Iterator[Step]:
    """Yield a step and all below it."""
    yield step
    for inner in step.inner:
        yield from all_steps(inner)


def programs_of(tool: str, arguments: Mapping[str, Json]) -> tuple[str, ...]:
    """Return the programs of a call as its words name them."""
    step = steps_of(tool, arguments)
    return (
        tuple(dict.fromkeys(each.words[0] for each in all_steps(step) if each.words))
        if step
        else ()
    )


def possible_programs(tool: str, arguments: Mapping[str, Json]) -> tuple[str, ...]:
    """Return every word of a call that may name a program.

    The caller, who knows the environment, finds where each of them is.
    """
    step = steps_of(tool, arguments)
    return (
        tuple(dict.fromkeys(word for each in all_steps(step) for word in named_programs(each)))
        if step
        else ()
    )


def named_programs(step: Step) -> Words:
    """Return the arguments of a command that may name programs.

    The first, and where it is not known what it starts, all.
    """
    return step.words[: MOST_PROGRAMS if step.unsure else 1]


def named_commands(step: Step) -> Iterator[Words]:
    """Yield the commands that a call would run, as far as they are known."""
    for each in all_steps(step):
        yield each.words
        yield from each.aliases


def possible_commands(step: Step) -> Iterator[Words]:
    """Yield words in which a command may begin anywhere.

    Rules that forbid or ask are tried at each of them.
    """
    for each in all_steps(step):
        if each.unsure or each.starts_more:
            yield each.words[1:]
        if each.text:
            yield from segments(each.text)


def _step_of_list(given: Json) -> Step:
    if isinstance(given, str) or not isinstance(given, Sequence) or not given:
        return Step(words=(), is_shell=True, unread=("its words cannot be read",))
    words = tuple(exact_word(word) for word in given)
    if None in words:
        return Step(words=(), is_shell=True, unread=("its words cannot be read",))
    return _step(tuple(word for word in words if word is not None), depth=0)


def _step(words: Words, *, depth: int) -> Step:
    name = words[0].rpartition("/")[2]
    if depth > _DEEPEST:
        unread = (f"commands are nested more than {_DEEPEST} deep",)
        return Step(words=words, is_shell=True, unread=unread, starts_more=True, text=_texts(words))
    if name in _SHELLS or name in _OTHER_SHELLS:
        return _shell_step(words, name, depth=depth)
    if name == "find" and not _FIND_STARTS.isdisjoint(words):
        return Step(words=words, unsure=("find starts commands of its own",))
    if name == "git" or name.startswith("git-"):
        return _git_step(words, name)
    if reader := _WRAPPERS.get(name):
        return _wrapped(words, name, reader, depth=depth)
    if _INTERPRETERS.match(name) and (script := _script_text(words)):
        return Step(words=words, text=script)
    if name in _TAKES_COMMANDS:
        return Step(words=words, text=_HEAD_OF_COMMAND.sub("\n", _texts(words)))
    # The loader runs what it is given
    starts_more = name in _STARTERS or name.startswith(("ld-linux", "ld-musl"))
    return Step(words=words, starts_more=starts_more, text=_texts(words) if starts_more else "")


# --- shells ---------------------------------------------------------------------------------------


def _shell_step(words: Words, name: str, *, depth: int) -> Step:
    texts = [word for option, word in pairwise(words[1:]) if _takes_text(option)]
    if not texts and all(word.startswith("-") for word in words[1:]):
        is_harmless = words[1:] in {("--version",), ("--help",)}
        return Step(
            words=words, unsure=() if is_harmless else (f"{name} runs what it reads from stdin",)
        )
    if not texts:
        return Step(words=words)
    if name in _SHELLS and len(words) == len(("sh", "-c", "text")) and words[1] == "-c":
        return _text_step(words, words[2], depth=depth)
    # The words behind the text are its parameters: `sh -c '"$@"' sh rm -rf x`
    parameters = words[words.index(texts[0]) + 2 :]
    handed_over = [text for text in texts if parameters and "$" in text]
    return Step(
        words=words,
        is_shell=True,
        unread=(f"{name} is not called as `{name} -c TEXT`",),
        text="\n".join([*words[1:], *(_with_parameters(each, parameters) for each in handed_over)]),
        starts_more=True,
    )


def _with_parameters(text: str, parameters: Words) -> str:
    for sign in ('"$@"', '"$*"', "$@", "$*"):
        text = text.replace(sign, " ".join(parameters))
    for number, word in enumerate(parameters[:9], 1):
        text = text.replace(f"${number}", word).replace(f"${{{number}}}", word)
    return text


def _takes_text(option: str) -> bool:
    return option.startswith("-") and not option.startswith("--") and "c" in option


def _text_step(words: Words, text: str, *, depth: int) -> Step:
    read = read_text(text)
    if read.doubts:
        return Step(words=words, is_shell=True, unread=read.doubts, text=text)
    inner = tuple(_step(command, depth=depth + 1) for command in read.commands)
    # What one command prints may be what another starts: `echo 'rm -rf x' | sh`
    hides_more = len(inner) > 1 and any(each.unsure for each in inner)
    return Step(words=words, is_shell=True, inner=inner, text=text if hides_more else "")


# --- other languages ------------------------------------------------------------------------------

# Programs that take a command in one word: `tar --to-command=…`, `less +!…`, `sed '1e …'`
_TAKES_COMMANDS = frozenset(
    [
        "bsdtar",
        "ed",
        "emacs",
        "ex",
        "gmake",
        "gsed",
        "less",
        "make",
        "man",
        "more",
        "nvim",
        "rsync",
        "sed",
        "tar",
        "vi",
        "view",
        "vim",
        "zip",
    ]
)
_HEAD_OF_COMMAND = re.compile(r"[=!+]|^\S*e(?=\s)", re.MULTILINE)
_INTERPRETERS = re.compile(
    r"(python|pypy|perl|ruby|node|nodejs|deno|bun|php|lua|luajit|tclsh|osascript|[gmn]?awk)[\d.]*$"
)
_STARTS = re.compile(
    r"system|exec|popen|spawn|subprocess|run\b|proc_open|passthru|`|qx|%x|\bsh\b|\|"
)
_LIST_SIGNS = str.maketrans(dict.fromkeys("[](),'\"", " "))


def _script_text(words: Words) -> str:
    """Return the words of an interpreter that may start commands, also those of a list."""
    scripts = [word for word in words[1:] if _STARTS.search(word)]
    return "\n".join([*scripts, *(script.translate(_LIST_SIGNS) for script in scripts)])


# --- git ------------------------------------------------------------------------------------------

_GIT_VALUES = frozenset(
    {
        "-C",
        "-c",
        "--attr-source",
        "--config-env",
        "--exec-path",
        "--git-dir",
        "--list-cmds",
        "--namespace",
        "--work-tree",
    }
)
_GIT_STARTERS = frozenset(
    {"bisect", "difftool", "filter-branch", "for-each-repo", "mergetool", "rebase", "submodule"}
)
_GIT_SETS = ("-c", "--config-env", "--exec-path")  # what can give a subcommand another meaning
_GIT_COMMANDS_TEXT = (
    "add am annotate apply archive backfill bisect blame branch bugreport bundle cat-file "
    "check-attr check-ignore "
    "check-mailmap check-ref-format checkout checkout-index cherry cherry-pick clean clone "
    "column commit commit-graph "
    "commit-tree config count-objects credential describe diagnose diff diff-files diff-index "
    "diff-pairs diff-tree "
    "difftool fast-export fast-import fetch fetch-pack fmt-merge-msg for-each-ref "
    "for-each-repo format-patch fsck gc "
    "get-tar-commit-id grep hash-object help hook index-pack init init-db interpret-trailers "
    "last-modified log "
    "ls-files ls-remote ls-tree mailinfo mailsplit maintenance merge merge-base merge-file "
    "merge-index merge-tree "
    "mergetool mktag mktree multi-pack-index mv name-rev notes pack-objects pack-redundant "
    "pack-refs patch-id prune "
    "prune-packed pull push range-diff read-tree rebase reflog refs remote repack replace "
    "replay repo rerere reset "
    "restore rev-list rev-parse revert rm send-pack shortlog show show-branch show-index "
    "show-ref sparse-checkout "
    "stage stash status stripspace submodule switch symbolic-ref tag unpack-file "
    "unpack-objects update-index "
    "update-ref update-server-info var verify-commit verify-pack verify-tag version "
    "whatchanged worktree write-tree"
)
_GIT_COMMANDS = frozenset(_GIT_COMMANDS_TEXT.split())


# Options of subcommands that name a program or a file which a later command runs; git also takes
# the beginnings of long ones
_GIT_HANDS_OUT = (
    *("--config", "--exec", "--extcmd", "--open-files-in-pager", "--output", "--receive-pack"),
    *("--template", "--upload-pack"),
)
_GIT_HANDS_OUT_SHORT = {
    "clone": ("-c", "-u"),
    "difftool": ("-x",),
    "grep": ("-O",),
    "rebase": ("-x",),
}
# Words of subcommands behind which a program stands
_GIT_RUNS = {"bisect": "run", "hook": "run", "submodule": "foreach"}
_GIT_READS_CONFIG = frozenset(
    {"get", "list", "--get", "--get-all", "--get-regexp", "--get-urlmatch", "--list", "-l"}
)


def _git_doubts(command: str, rest: Words) -> Iterator[tuple[int, str]]:
    """Yield the words by which a subcommand runs something else, or has a later one do so."""
    names = [place for place, word in enumerate(rest) if not word.startswith("-")]
    for place, word in enumerate(rest):
        option = word.partition("=")[0]
        is_long = len(option) > 3 and any(each.startswith(option) for each in _GIT_HANDS_OUT)  # noqa: PLR2004 -- "--" and two letters
        if is_long or word.startswith(_GIT_HANDS_OUT_SHORT.get(command, ("\0",))):
            last = place if "=" in word else min(place + 1, len(rest) - 1)
            yield last, f"git {command} {option} names what is run or written"
        elif "ext::" in word:
            yield place, "an address with ext:: is a command"
        elif word == _GIT_RUNS.get(command):
            yield min(place + 1, len(rest) - 1), f"git {command} {word} runs another command"
    if command == "config" and len(names) > 1 and _GIT_READS_CONFIG.isdisjoint(rest):
        yield names[0], "git config can change what later commands of git run"
    if command in {"difftool", "mergetool", "for-each-repo"} and rest:
        yield 0, f"git {command} runs another command"


def _git_step(words: Words, name: str) -> Step:
    """Read a command of git.

    An alias may stand for its subcommand, and settings among its words may make one.
    """
    if name != "git":  # git-push is what git starts for `git push`
        meant = _git_step(("git", name.removeprefix("git-"), *words[1:]), "git")
        return msgspec.structs.replace(
            meant, words=words, aliases=(meant.words, *meant.aliases), unnamed=()
        )
    unnamed: list[tuple[int, str]] = []
    set_here: list[tuple[str, str]] = []
    at = 1
    while at < len(words) and words[at].startswith("-"):
        option, _, value = words[at].partition("=")
        takes_next = option in _GIT_VALUES and "=" not in words[at]
        if option in _GIT_SETS:
            unnamed.append((at + takes_next, f"git {option} can change what its subcommand does"))
            key, _, meaning = (
                words[at + 1] if takes_next and at + 1 < len(words) else value
            ).partition("=")
            set_here.append((key.casefold(), meaning))
        at += 2 if takes_next else 1
    command, rest = (words[at] if at < len(words) else ""), words[at + 1 :]
    if command and command not in _GIT_COMMANDS:
        unnamed.append((at, f"git {shown_program(command)} may be an alias for anything"))
    unnamed += [(at + 1 + place, why) for place, why in _git_doubts(command, rest)]
    meanings = [meaning for key, meaning in set_here if key == f"alias.{command.casefold()}"]
    starts_more = command in _GIT_STARTERS
    texts = [meaning.removeprefix("!") for _, meaning in set_here] + (
        [_texts(words[at:])] if starts_more else []
    )
    return Step(
        words=words,
        aliases=tuple(
            ("git", *meaning.split(), *rest) for meaning in meanings if not meaning.startswith("!")
        ),
        unnamed=tuple(unnamed),
        starts_more=starts_more,
        text="\n".join(filter(None, texts)),
    )


# --- wrappers -------------------------------------------------------------------------------------

# Where the inner command begins; 0 without one, None if that is not known
_Reader = Callable[[Words], int | None]
_FIND_STARTS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})


def _wrapped(words: Words, name: str, reader: _Reader, *, depth: int) -> Step:
    start = reader(words)
    if start is None:
        return Step(
            words=words,
            unsure=(f"it is not clear what {name} would start",),
            text=_texts(words),
        )
    inner = (_step(words[start:], depth=depth + 1),) if start else ()
    return Step(words=words, inner=inner)


def _texts(words: Words) -> str:
    """Return the words that may be shell text for somebody."""
    return "\n".join(word for word in words[1:] if not _SHELL_SIGNS.isdisjoint(word))


def _plain(words: Words) -> int | None:
    return (
        None
        if _is_option(words, 1) or (len(words) > 1 and "=" in words[1])
        else int(len(words) > 1)
    )


def _is_option(words: Words, at: int) -> bool:
    return words[at : at + 1] == ("",) or (len(words) > at and words[at].startswith(("-", "+")))


def _timeout(words: Words) -> int | None:
    is_plain = (
        len(words) > 2  # noqa: PLR2004 -- the words before it are counted
        and words[1].removesuffix("s").replace(".", "", 1).isdigit()
        and not _is_option(words, 2)
    )
    return 2 if is_plain else None


def _nice(words: Words) -> int | None:
    if words[1:2] == ("-n",):
        return 3 if len(words) > 3 and words[2].isdigit() and not _is_option(words, 3) else None  # noqa: PLR2004 -- nice, -n, number, command
    return _plain(words)


def _unknown(words: Words) -> int | None:
    del words
    return None


# xargs adds words that nobody has seen; the others have options of which too many start commands.
_TOO_MANY_WAYS = (
    "busybox chpst chroot chrt command daemonize entr eval exec fakeroot firejail flock ionice "
    "ltrace nsenter parallel "
    "pkexec proxychains rlwrap runuser script setpriv ssh stdbuf strace su systemd-run taskset "
    "time torsocks toybox unshare "
    "unbuffer watch xargs"
)
# Programs that start another one which stands among their words, beside much else that they do.
_STARTERS_TEXT = (
    "apptainer asdf aws-vault bwrap bunx bundle cage capsh cgexec chamber chronic conda crun "
    "dbus-launch dbus-run-session "
    "direnv distrobox gosu linux32 linux64 rustup setarch start-stop-daemon su-exec "
    "systemd-inhibit "
    "docker docker-compose doppler dotenv env-cmd expect fdfind fd gdb guix hatch hyperfine "
    "kubectl lxc lldb mamba "
    "micromamba mise nerdctl nix nix-shell nodemon npm npx numactl oc op pdm perf pipenv pipx "
    "pnpm pnpx podman poetry "
    "prlimit proot rye screen sem singularity sops stdbuf tini tmux toolbox tox turbo uv uvx "
    "vagrant valgrind vault "
    "xvfb-run yarn"
)
_STARTERS = frozenset(_STARTERS_TEXT.split())


def is_starter(name: str) -> bool:
    """Return whether a program of that name starts another one that stands among its words."""
    return name in _WRAPPERS or name in _STARTERS


_WRAPPERS: dict[str, _Reader] = {
    **dict.fromkeys(("doas", "env", "nohup", "setsid", "sudo"), _plain),
    "nice": _nice,
    "timeout": _timeout,
    **dict.fromkeys(_TOO_MANY_WAYS.split(), _unknown),
}
