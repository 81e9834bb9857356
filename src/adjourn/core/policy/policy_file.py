"""What a policy file may contain, and where a file breaks that."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from adjourn.core.ask import Approver
from adjourn.core.call import COMMAND
from adjourn.core.people import MOST_APPROVALS
from adjourn.core.policy.judgement import Action, Effect, Never
from adjourn.core.policy.locations import ANY_DEPTH
from adjourn.core.policy.pattern import REST, BadPattern, read_pattern
from adjourn.core.policy.policy import Include
from adjourn.core.policy.rule import ANY_TOOL, Rule
from adjourn.core.text.toml import (
    NotToml,
    Path,
    Problem,
    TableReader,
    as_list,
    as_table,
    as_tables,
    tables_of,
    unknown_key,
)
from adjourn.core.text.when import milliseconds

MOST_RULES = 10_000
_LONGEST_EXPIRY = 10 * 365 * 86_400_000
_COMMAND_TOOLS = (COMMAND, "run_command", "Bash", "bash", "shell", "Shell")
# Of people, teams and notifiers. Lower case and ASCII, so that no two of them look alike.
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_HEADER = re.compile(r"^\[\[rule\]\]", re.MULTILINE)

POLICY_KEYS = {
    "never": '`"pause"` or `"reject"`: whether a call that may never run waits for somebody '
    "who approves it by its name, or is "
    "turned down at once. Without it, `pause`. Of two files, `reject` wins.",
    "directories": "Where the built-in agent may read and write beside its workspace: paths "
    "that begin with `/` or `~/`. "
    "Only in the user's own policy; without it, nowhere.",
    "include": "Other files whose rules count as if they stood here, as paths relative to this "
    "file. "
    "A project's must lie beside its `policy.toml` or below.",
    "rule": "The rules, each a table `[[rule]]`. Their order does not matter.",
}
RULE_KEYS = {
    "tool": "The tool, as a pattern. `command` is what `adjourn run -- …` runs. Without it, "
    "every tool.",
    "args": 'The arguments of a command, one pattern each. The last may be `"**"`: any '
    "further arguments. "
    "For another tool a table: the name of an argument and the pattern of its value. Without "
    "it, all calls of the tool.",
    "action": '`"auto"`, `"prompt"` or `"never"`. A rule without it only sets what follows.',
    "approver": '`"any"` or `"human"`: who may approve.',
    "not_requester": "`true`: the user who started the task may not approve it.",
    "signed": "`true`: an approval counts only if it is signed.",
    "effect": '`"read_only"` or `"idempotent"`: a second run does no harm, so that a run that '
    "was lost may be repeated.",
    "dirs": "Where a rule that says `auto` or `effect` holds: patterns of directories, "
    "which count from the workspace or begin with `/`. "
    '`"."` is the workspace itself, `"**"` any directory in it, `"services/*"` each one below '
    '`services`, `"/**"` anywhere. '
    "Without it, the rule holds in the workspace's root only. The directory of a call is what "
    "it is started in, "
    "and what an option such as `git -C` leads to.",
    "outside_sandbox": "`true`: the rule also lets a call run that asks to leave the sandbox "
    "of its agent "
    "(`sandbox_permissions` of Codex, `dangerouslyDisableSandbox` of Claude Code). Without it, "
    "a person is asked.",
    "expires_after": 'How long an approval is waited for: `"90s"`, `"15m"`, `"8h"`, `"2d"`. '
    "Without it, for ever.",
    "approvals": "How many people must approve, from 1 to 20. With more than one, each must be a"
    " `[[person]]` of the user's config, and counts once whatever the channel.",
    "approvers": 'Who may approve: names of `[[person]]` tables, and `"team:NAME"` for everybody'
    " of a `[[team]]`. Of several rules, only those count whom each of them names.",
    "remind_after": "When to remind of an ask that is still open, once: a time as `expires_after`"
    " has it, and shorter than that.",
    "escalate_to": "Who else gets the reminder, beside those who get all reminders:"
    " names of notifiers, of people, and of teams. It needs `remind_after`. Only in the user's own"
    " policy."
    " Nobody may approve because of it.",
}
"""What each key means, for the reference."""


class PolicyContent(msgspec.Struct, frozen=True, kw_only=True):
    """What one file says."""

    rules: tuple[Rule, ...] = ()
    never: Never = Never.PAUSE
    directories: tuple[str, ...] = ()
    includes: tuple[Include, ...] = ()
    problems: tuple[Problem, ...] = ()


def read_policy(text: str, *, source: str, is_project: bool) -> PolicyContent:
    """Read a policy file; all that is wrong with it is told with line and column."""
    try:
        tables = _parsed(text, source=source)
    except NotToml as wrong:
        return PolicyContent(problems=(wrong.problem,))
    reader = _PolicyReader(text, tables, source=source, is_project=is_project)
    return reader.content()


def _parsed(text: str, *, source: str) -> dict[str, Any]:
    count = len(_HEADER.findall(text))
    if count > MOST_RULES:
        raise NotToml(
            Problem(
                source=source,
                line=1,
                column=1,
                what=f"it has {count:,} rules, and {MOST_RULES:,} are the most",
            )
        )
    return tables_of(text, source=source)


class _PolicyReader(TableReader):
    """Reads the tables of a policy file."""

    def __init__(self, text: str, tables: dict[str, Any], *, source: str, is_project: bool) -> None:
        super().__init__(text, tables, source=source)
        self._is_project = is_project

    def content(self) -> PolicyContent:
        self._unknown_keys((), self._tables, POLICY_KEYS)
        includes = tuple(self._includes())
        never = self._one_of(("never",), self._tables.get("never", Never.PAUSE), Never)
        directories = tuple(self._directories())
        rules = tuple(self._rules())
        problems = self._in_order()
        return PolicyContent(
            rules=rules,
            never=never or Never.REJECT,
            directories=directories,
            includes=includes,
            problems=problems,
        )

    # --- telling what is wrong --------------------------------------------------------------------

    def _unknown_keys(self, path: Path, table: dict[str, Any], known: dict[str, str]) -> None:
        for key in table.keys() - known.keys():
            self._wrong(
                self._places.of_key((*path, key)), _unknown(key, known, is_project=self._is_project)
            )

    # --- values -----------------------------------------------------------------------------------

    def _one_of(
        self, path: Path, given: Any, kind: Any, *, but: frozenset[str] = frozenset()
    ) -> Any:
        words = [str(word) for word in kind if word not in but]
        if given in words and isinstance(given, str):
            return kind(given)
        self._wrong_value(path, f"`{path[-1]}` must be {_either(words)}")
        return None

    def _pattern(self, path: Path, given: Any) -> str | None:
        if not isinstance(given, str):
            self._wrong_value(path, "a pattern must be text, in quotes")
            return None
        try:
            read_pattern(given)
        except BadPattern as bad:
            self._wrong_value(path, f"the pattern is invalid: {bad.why}", offset=bad.offset)
            return None
        return given

    def _includes(self) -> Iterator[Include]:
        paths = as_list(self._tables.get("include", []))
        if paths is None:
            self._wrong_value(("include",), "`include` must be a list of paths")
        for number, path in enumerate(paths or ()):
            if isinstance(path, str) and path and "\0" not in path:
                place = self._places.of_value(("include", number))
                yield Include(path=path, line=place.line, column=place.column)
            else:
                self._wrong_value(("include", number), "`include` must be a list of paths")

    def _directories(self) -> Iterator[str]:
        if self._is_project and "directories" in self._tables:
            what = "a project's policy may not say `directories`: only the user's own may"
            self._wrong(self._places.of_key(("directories",)), what)
            return
        paths = as_list(self._tables.get("directories", []))
        if paths is None:
            self._wrong_value(("directories",), "`directories` must be a list of paths")
        for number, path in enumerate(paths or ()):
            if isinstance(path, str) and path.startswith(("/", "~/")) and "\0" not in path:
                yield path
            else:
                self._wrong_value(
                    ("directories", number),
                    "a directory must be an absolute path, or begin with `~/`",
                )

    # --- rules ------------------------------------------------------------------------------------

    def _rules(self) -> Iterator[Rule]:
        tables = as_tables(self._tables.get("rule", []))
        if tables is None:
            self._wrong(
                self._places.of_key(("rule",)),
                "`rule` must be tables: write [[rule]], with two brackets",
            )
            return
        if len(tables) > MOST_RULES:
            self._wrong(
                self._places.of_key(("rule",)),
                f"it has {len(tables):,} rules, and {MOST_RULES:,} are the most",
            )
            return
        lines = self._lines(len(tables))
        for number, table in enumerate(tables):
            if rule := self._rule(number, table, line=lines[number]):
                yield rule

    def _lines(self, count: int) -> list[int]:
        """Return the line of every rule.

        Found quickly in a plain file, by the whole walk in any other.
        """
        starts = [found.start() for found in _HEADER.finditer(self._file_text)]
        if len(starts) != count or '"""' in self._file_text or "'''" in self._file_text:
            return [self._places.of_key(("rule", number)).line for number in range(count)]
        lines: list[int] = []
        line, before = 1, 0
        for start in starts:
            line += self._file_text.count("\n", before, start)
            before = start
            lines.append(line)
        return lines

    def _rule(self, number: int, table: dict[str, Any], *, line: int) -> Rule | None:
        path: Path = ("rule", number)
        before = len(self._problems)
        self._unknown_keys(path, table, RULE_KEYS)
        settings: dict[str, Any] = {"source": self._source, "line": line}
        for key in RULE_KEYS.keys() & table.keys():
            settings.update(self._setting(key, (*path, key), table[key]))
        if len(self._problems) > before:
            return None
        rule = Rule(**settings)
        self._check(rule, path)
        return rule if len(self._problems) == before else None

    def _check(self, rule: Rule, path: Path) -> None:
        if not rule.loosens and not rule.tightens:
            self._wrong(self._places.of_key(path), "the rule has no effect: give it an `action`")
        for key in ("dirs", "outside_sandbox"):
            if getattr(rule, key) and not rule.loosens:
                self._wrong(
                    self._places.of_key((*path, key)),
                    f"`{key}` is for rules that say `auto` or `effect`",
                )
        if rule.escalate_to and rule.remind_after is None:
            self._wrong(
                self._places.of_key((*path, "escalate_to")),
                "`escalate_to` goes with `remind_after`: that is when somebody is told",
            )
        expiry = rule.expires_after
        if rule.remind_after is not None and expiry is not None and rule.remind_after >= expiry:
            self._wrong_value((*path, "remind_after"), "`remind_after` must be before the expiry")
        if rule.argv is not None and not any(
            read_pattern(rule.tool).matches(tool) for tool in _COMMAND_TOOLS
        ):
            self._wrong_value(
                (*path, "args"),
                f"words are for commands; of the tool {rule.tool} give a table of its arguments",
            )

    def _setting(self, key: str, path: Path, given: Any) -> dict[str, Any]:
        if key == "args":
            return self._args(path, given)
        readers: dict[str, Callable[[Path, Any], Any]] = {
            "tool": self._tool,
            "action": self._action,
            "approver": self._approver,
            "effect": self._effect,
            "expires_after": self._span,
            "remind_after": self._span,
            "approvals": self._approvals,
            "approvers": self._names,
            "escalate_to": self._escalate_to,
            "dirs": self._dirs,
        }
        read: Callable[[Path, Any], Any] = readers.get(key) or self._yes_or_no
        return {key: read(path, given)}

    def _tool(self, path: Path, given: Any) -> str:
        return self._pattern(path, given) or ANY_TOOL

    def _approver(self, path: Path, given: Any) -> Any:
        return self._one_of(path, given, Approver)

    def _args(self, path: Path, given: Any) -> dict[str, Any]:
        if words := as_list(given):
            return {"argv": self._words(path, words)}
        if patterns := as_table(given):
            return {
                "arguments": {
                    key: self._pattern((*path, key), each) for key, each in patterns.items()
                }
            }
        self._wrong_value(
            path, "`args` must be a list of patterns, or a table of them, and not empty"
        )
        return {}

    def _words(self, path: Path, given: list[Any]) -> tuple[str | None, ...]:
        last = len(given) - 1
        return tuple(
            REST if number == last and word == REST else self._pattern((*path, number), word)
            for number, word in enumerate(given)
        )

    def _action(self, path: Path, given: Any) -> Any:
        if self._is_project and given == Action.AUTO:
            self._wrong_value(
                path, "a project's policy may not say `auto`: only the user's own may"
            )
        return self._one_of(path, given, Action)

    def _effect(self, path: Path, given: Any) -> Any:
        if self._is_project:
            self._wrong(
                self._places.of_key(path),
                "a project's policy may not say `effect`: only the user's own may",
            )
        return self._one_of(path, given, Effect, but=frozenset({Effect.UNKNOWN}))

    def _dirs(self, path: Path, given: Any) -> tuple[str, ...]:
        patterns = as_list(given)
        if not patterns:
            self._wrong_value(
                path,
                '`dirs` must be a list of patterns, and not empty: ["**"] is the whole workspace',
            )
            return ()
        for number, each in enumerate(patterns):
            parts = each.split("/") if isinstance(each, str) else [""]
            if not isinstance(each, str) or not each or ".." in parts or each.startswith("~"):
                what = (
                    "a directory is a pattern that counts from the workspace, or begins with `/`;"
                    " it has no `..` and no `~`"
                )
                self._wrong_value((*path, number), what)
                continue
            at = 0
            for part in parts:
                try:
                    read_pattern("" if part == ANY_DEPTH else part)
                except BadPattern as bad:
                    self._wrong_value(
                        (*path, number),
                        f"the pattern is invalid: {bad.why}",
                        offset=at + bad.offset,
                    )
                at += len(part) + 1
        return tuple(str(each) for each in patterns)

    def _yes_or_no(self, path: Path, given: Any) -> bool:
        if not isinstance(given, bool):
            self._wrong_value(path, f"`{path[-1]}` must be true or false")
        return given is True

    def _approvals(self, path: Path, given: Any) -> int:
        is_number = isinstance(given, int) and not isinstance(given, bool)
        if not is_number or not 1 <= given <= MOST_APPROVALS:
            self._wrong_value(path, f"`approvals` must be a number from 1 to {MOST_APPROVALS}")
            return 1
        return int(given)

    def _names(self, path: Path, given: Any) -> tuple[str, ...]:
        names = as_list(given)
        if not names:
            self._wrong_value(path, f"`{path[-1]}` must be a list of names, and not empty")
            return ()
        for number, each in enumerate(names):
            name = each.removeprefix("team:") if isinstance(each, str) else ""
            if not _NAME.fullmatch(name):
                self._wrong_value(
                    (*path, number),
                    'a name has lower-case letters a to z, digits, ".", "_" and "-";'
                    ' a team is "team:NAME"',
                )
        return tuple(str(each) for each in names)

    def _escalate_to(self, path: Path, given: Any) -> tuple[str, ...]:
        if self._is_project:
            self._wrong(
                self._places.of_key(path),
                "a project's policy may not say `escalate_to`: only the user's own may",
            )
        return self._names(path, given)

    def _span(self, path: Path, given: Any) -> int:
        try:
            length = milliseconds(given) if isinstance(given, str) else 0
        except ValueError:
            length = 0
        if not 0 < length <= _LONGEST_EXPIRY:
            self._wrong_value(
                path, f'`{path[-1]}` must be a time such as "90s", "15m", "8h" or "2d"'
            )
        return length


def _unknown(key: str, known: dict[str, str], *, is_project: bool) -> str:
    if key == "notify" and is_project:
        return "a project's policy may not say `notify`: only the user's own config may"
    return unknown_key(key, known)


def _either(words: list[str]) -> str:
    *first, last = [f'"{word}"' for word in words]
    return f"{', '.join(first)} or {last}"
