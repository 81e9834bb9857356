#!/usr/bin/env python3
"""Writes docs/reference/ from the code.

Without `--write` it only says which pages are out of date.
"""

import ast
import inspect
import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import click
import msgspec

import adjourn.controller.agents
import adjourn.controller.approvals
import adjourn.controller.asks
import adjourn.controller.batches
import adjourn.controller.decisions
import adjourn.controller.delegations
import adjourn.controller.edits
import adjourn.controller.endings
import adjourn.controller.gate
import adjourn.controller.plans
import adjourn.controller.reasons
import adjourn.controller.runs
import adjourn.controller.tasks
import adjourn.controller.transaction
from adjourn.cli.app import GROUPS, VERBS, cli
from adjourn.cli.examples import EXAMPLES
from adjourn.core import exits
from adjourn.core.agent.calls import SessionCheck
from adjourn.core.clarification import checkpoint_schema
from adjourn.core.diffstat import Diffstat, FileChange
from adjourn.core.documents import (
    AskDoc,
    CallDoc,
    ClarificationDoc,
    ErrorDoc,
    Failure,
    ItemDoc,
    Manifest,
    QuestionDoc,
    ReasonDoc,
    ResumabilityDoc,
    RunDoc,
    TermsDoc,
    ToolCall,
    UsageDoc,
    WorkspaceDoc,
)
from adjourn.core.errors import AdjournError
from adjourn.core.outcome import (
    Completed,
    Exit,
    Failed,
    Interrupted,
    Outcome,
    Standing,
    Waits,
    WantsApproval,
)
from adjourn.core.plan.plan_file import MOST_TASKS, PLAN_KEYS, TASK_KEYS
from adjourn.core.policy.policy_file import MOST_RULES, POLICY_KEYS, RULE_KEYS
from adjourn.core.states import AskState, TaskState
from adjourn.core.task import Wish
from adjourn.mcp_server import tools as mcp_tools
from adjourn.notifiers import OURS as NOTIFIERS
from adjourn.runners import COMMAND, DEFAULT_AGENT, OURS, find_runner
from adjourn.settings.notify import COMMON_KEYS
from adjourn.settings.people import PERSON_KEYS, TEAM_KEYS
from adjourn.settings.principals import FILE_KEYS, PRINCIPAL_KEYS, WEBHOOK_KEYS
from adjourn.settings.web_proxy import WEB_KEYS
from adjourn.views.notice import OCCASIONS, Notice, Occasion
from adjourn.views.paused import PausedDoc
from adjourn.views.screen_keys import SCREEN_KEYS
from adjourn.web.openapi import openapi_document

DOCS = Path(__file__).resolve().parent
REFERENCE = DOCS / "reference"
MANUAL = DOCS / "man" / "share" / "man" / "man1" / "adjourn.1"
PACKAGE = DOCS.parent / "src" / "adjourn"
MADE = "<!-- Made by docs/generate.py: change the code or that script, then say `docs/generate.py --write`. -->\n"
COMMON = frozenset({"--store", "--key-file", "--output", "--full-ids", "--verbose", "--help"})
_PIPE = r"\|"


def main(arguments: Sequence[str]) -> int:
    """Compare the pages with the code, or rewrite them.

    Return 1 if any was out of date and stays so.
    """
    wanted = {REFERENCE / name: text for name, text in pages().items()}
    wanted[DOCS / "architecture.md"] = architecture()
    wanted[DOCS / "how-to" / "tui.md"] = keys_of_tui()
    wanted[MANUAL] = man_page()
    old = [path for path, text in wanted.items() if not path.exists() or path.read_text() != text]
    for path in old:
        if "--write" in arguments:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(wanted[path])
        state = "rewritten" if "--write" in arguments else "is out of date"
        sys.stdout.write(f"{path.name} {state}\n")
    return 1 if old and "--write" not in arguments else 0


def pages() -> dict[str, str]:
    """Return every page of the reference by its name."""
    return {
        "cli.md": _page(*_cli()),
        "exit-codes.md": _page(*_exit_codes()),
        "errors.md": _page(*_errors()),
        "json.md": _page(*_json()),
        "manifest.schema.json": _schema_text(schema()),
        "checkpoint.schema.json": _schema_text(checkpoint_schema()),
        "events.md": _page(*_events()),
        "files.md": _page(*_files()),
        "environment.md": _page(*_environment()),
        "config.md": _page(*_config()),
        "policy.md": _page(*_policy()),
        "plan.md": _page(*_plan()),
        "mcp.md": _page(*_mcp()),
        "api.md": _page(*_api()),
    }


# Who calls a tool that decides, and whether it may; all other tools are for everybody
_DECIDERS = {
    "the connection that started the task, or one above it": "yes",
    "the same host later, with its secret": "yes",
    "an agent to which it is delegated": "yes",
    "another agent, also under the same name": "no",
    "what is part of a run": "no",
}


def _mcp() -> Iterator[str]:
    yield "MCP tools"
    yield (
        "What `adjourn mcp` offers a parent agent. [How to use it](../how-to/mcp.md). A result is one document; an error is a "
        "sentence and what helps. `status` is `Pending`, `Running`, `Paused`, `Completed`, `Failed` or `Cancelled`; `state` is "
        "adjourn's own word."
    )
    for name, tool in mcp_tools.TOOLS.items():
        schema = mcp_tools.schema_of(tool.arguments)
        yield f"## {name}"
        yield tool.description
        needed = schema.get("required", [])
        rows = [
            (_code(key), "yes" if key in needed else " ", value.get("description", ""))
            for key, value in schema["properties"].items()
        ]
        yield _table(("argument", "needed", "meaning"), rows)
    yield "## Who may call what"
    yield (
        "Made of the registry of the tools. A rule that says `human` or `never`, a question to people, and a call that nobody saw "
        "end are for people only. Every refusal is an event of the task. No tool changes who may decide: "
        "`setup` and `delegate` are verbs of the command line, need the scope `admin`, and are refused inside a run."
    )
    cells = [
        [_code(name), *("yes" if tool.inside else may for may in _DECIDERS.values())]
        for name, tool in mcp_tools.TOOLS.items()
    ]
    yield _table(("tool", *_DECIDERS), cells)


def _api() -> Iterator[str]:
    document = openapi_document()
    yield "HTTP API"
    yield (
        "What `adjourn serve` answers at `/api/v1`. [How to use it](../how-to/serve.md). Made of the OpenAPI document, which the "
        "server has at `/api/v1/openapi.json`. Every request needs `Authorization: Bearer TOKEN`. An error is a document of the "
        "type `application/problem+json`: `detail` is the sentence, `code` one of [these](errors.md), `way_out` what helps."
    )
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield f"## {method.upper()} {path}"
            yield operation["description"].replace("\n\n", " ")
            rows = [
                (_code(each["name"]), each["in"], each.get("description") or _type(each["schema"]))
                for each in operation["parameters"]
                if each["in"] != "path"
            ]
            if rows:
                yield _table(("parameter", "in", "meaning"), rows)
            body = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
            if schema := body.get("schema"):
                yield "Body:"
                yield _table(("key", "needed", "meaning"), _keys(schema, document))
            answers = [
                f"{status} {_named(answer)}".strip()
                for status, answer in operation["responses"].items()
                if not status.startswith(("4", "5"))
            ]
            yield f"Answers {', '.join(answers)}."


def _named(answer: dict[str, Any]) -> str:
    """Return what an answer is: a type of the document, or a media type."""
    for media, content in answer.get("content", {}).items():
        ref = content["schema"].get("$ref")
        return _code(ref.rpartition("/")[2]) if ref else _code(media)
    return ""


def _keys(schema: dict[str, Any], document: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return the keys of a body; of several kinds of one, each with its verb."""
    rows: list[tuple[str, str, str]] = []
    for each in schema.get("anyOf", [schema]):
        found = document["components"]["schemas"][each["$ref"].rpartition("/")[2]]
        needed = found.get("required", [])
        for key, value in found["properties"].items():
            if "enum" in value and len(value["enum"]) == 1:
                rows.append((f"`{key}: {value['enum'][0]}`", "yes", found["description"]))
                continue
            options = [one.get("description", "") for one in value.get("anyOf", ())]
            says = value.get("description") or "".join(options) or _type(value)
            rows.append((_code(key), "yes" if key in needed else " ", says))
    return rows


def _page(title: str, *parts: str) -> str:
    return "\n".join([f"# {title}\n", MADE, "\n\n".join(part.rstrip() for part in parts), ""])


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(
        f"| {' | '.join(cell.replace('|', _PIPE) for cell in line)} |" for line in lines
    )


def _code(text: str) -> str:
    return f"`{text}`"


# --- the keys of the TUI --------------------------------------------------------------------------


def keys_of_tui() -> str:
    """Return the page of the TUI with the table of its keys."""
    page = DOCS / "how-to" / "tui.md"
    rows = [
        (" ".join(f"`{key}`" for key in each.keys), f"`{each.action}`", each.sentence)
        for each in SCREEN_KEYS
    ]
    block = f"<!-- keys -->\n{_table(('key', 'action', 'does'), rows)}\n<!-- /keys -->"
    text = page.read_text()
    return re.sub(r"<!-- keys -->.*?<!-- /keys -->", lambda _: block, text, flags=re.DOTALL)


# --- the architecture -----------------------------------------------------------------------------


def architecture() -> str:
    """Return the page of the architecture with its map and its layers drawn from the source."""
    text = (DOCS / "architecture.md").read_text()
    for name, drawn in (("map", _map()), ("layers", _layers())):
        block = f"<!-- {name} -->\n```text\n{drawn}\n```\n<!-- /{name} -->"
        pattern = rf"<!-- {name} -->.*?<!-- /{name} -->"
        text = re.sub(pattern, block.replace("\\", r"\\"), text, flags=re.DOTALL)
    return text


def _map() -> str:
    """Draw every package and module with the first line of its docstring."""
    lines = ["src/adjourn/"]
    folders = sorted({path.parent for path in PACKAGE.rglob("*.py")} - {PACKAGE})
    for folder in folders:
        lines += ["", _entry(f"{folder.relative_to(PACKAGE)}/", folder / "__init__.py")]
        modules = [path for path in sorted(folder.glob("*.py")) if path.name != "__init__.py"]
        lines += [_entry(f"  {path.name}", path) for path in modules]
    loose = [path for path in sorted(PACKAGE.glob("*.py")) if path.name != "__init__.py"]
    return "\n".join([*lines, "", *(_entry(path.name, path) for path in loose)])


def _entry(name: str, path: Path) -> str:
    summary = (ast.get_docstring(ast.parse(path.read_text())) or "").partition("\n")[0]
    return f"{name:<24}{summary.rstrip('.')}".rstrip()


def _layers() -> str:
    """Draw the layers as import-linter has them; what is in parentheses is still to come."""
    settings = tomllib.loads((DOCS.parent / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers = next(each["layers"] for each in settings["contracts"] if each["type"] == "layers")
    present = [re.sub(r"\(\w+\)( \| )?", "", layer).strip(" |") for layer in layers]
    shown = [layer for layer in present if layer]
    return "\n".join(
        f"{'  ' * depth}{'→ ' if depth else ''}{layer}" for depth, layer in enumerate(shown)
    )


# --- the command line -----------------------------------------------------------------------------


def _cli() -> Iterator[str]:
    yield "Verbs and options"
    yield "`adjourn VERB --help` says the same. `adjourn -c ID …` is short for `adjourn resume ID …`."
    yield _table(("verb", "does"), [(_link(name), what) for name, what in VERBS.items()])
    yield (
        "An ID is a task id, a checkpoint id, or the beginning of one, if it is the only one that begins so. "
        "An ASK is the id of an ask or its beginning; the inbox lists them. A CALL is a task id, a dot, and the call's name: "
        "`TASK.tc_1`; or the ask about it. A TC is the name alone: `tc_1`."
    )
    yield "## Options of every verb"
    yield _options(command_named("inbox"), common=True)
    for path, command in commands():
        yield f"## adjourn {path}"
        yield f"```text\n{_usage(path, command)}\n```"
        yield _prose(command.help or "")
        yield _options(command, common=False)
        if path in EXAMPLES:
            yield f"```text\n$ {EXAMPLES[path]}\n```"


def _link(verb: str) -> str:
    heading = next(path for path, _ in commands() if path.split()[0] == verb)
    return f"[`{verb}`](#adjourn-{heading.replace(' ', '-')})"


def commands() -> Iterator[tuple[str, click.Command]]:
    """Yield every verb, and the verbs below it, with the words that call it."""
    for name in VERBS:
        command = command_named(name)
        if isinstance(command, click.Group):
            yield from ((f"{name} {below}", inner) for below, inner in command.commands.items())
        else:
            yield name, command


def command_named(name: str) -> click.Command:
    """Return a verb."""
    command = cli.get_command(click.Context(cli), name)
    if command is None:
        raise KeyError(name)
    return command


def _usage(path: str, command: click.Command) -> str:
    return " ".join(["adjourn", path, *command.collect_usage_pieces(click.Context(command))])


def _prose(text: str) -> str:
    paragraphs = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(
        f"```text\n{part[2:]}\n```" if part.startswith("\b\n") else part for part in paragraphs
    )


def _options(command: click.Command, *, common: bool) -> str:
    context = click.Context(command, help_option_names=["-h", "--help"])
    options = [option for option in command.get_params(context) if isinstance(option, click.Option)]
    wanted = [option for option in options if (not COMMON.isdisjoint(option.opts)) == common]
    records = [record for option in wanted if (record := option.get_help_record(context))]
    return (
        _table(("option", "meaning"), [(_code(names), meaning) for names, meaning in records])
        if records
        else ""
    )


# --- the man page ---------------------------------------------------------------------------------


def man_page() -> str:
    """Return `adjourn(1)` as roff: what `adjourn VERB --help` says, and no more."""
    return "\n".join(_roff_page()) + "\n"


def _roff_page() -> Iterator[str]:
    yield '.\\" Made from the help of the verbs by docs/generate.py'
    yield '.TH ADJOURN 1 "" "adjourn" "User Commands"'
    yield ".SH NAME"
    yield "adjourn \\- let a headless agent or tool stop for a person, leave, and come back"
    yield ".SH SYNOPSIS"
    yield ".B adjourn"
    yield ".br"
    yield ".B adjourn"
    yield "\\fIVERB\\fR [\\fIOPTION\\fR]... [\\fIARGUMENT\\fR]..."
    yield ".SH DESCRIPTION"
    yield from _roff_prose(cli.help or "")
    yield ".SH VERBS"
    named = {name for names in GROUPS.values() for name in names}
    *_, last = GROUPS
    for group, names in GROUPS.items():
        others = [name for name in VERBS if name not in named] if group == last else []
        yield f".SS {_roff(group)}"
        for name in (*names, *others):
            yield ".TP"
            yield f".B {_roff(name)}"
            yield _roff(VERBS[name])
    yield ".SH OPTIONS OF EVERY VERB"
    yield from _roff_options(command_named("inbox"), is_common=True)
    for path, command in commands():
        yield f".SH {_roff(f'adjourn {path}'.upper())}"
        pieces = command.collect_usage_pieces(click.Context(command))
        yield f".B {_roff(f'adjourn {path}')}"
        yield _roff(" ".join(pieces))
        yield ".PP"
        yield from _roff_prose(command.help or "")
        yield from _roff_options(command, is_common=False)
        if path in EXAMPLES:
            yield ".PP"
            yield "Example:"
            yield from _roff_code(EXAMPLES[path])
    yield ".SH EXIT STATUS"
    for code, meaning in exits.MEANINGS.items():
        yield ".TP"
        yield f".B {code}"
        yield _roff(meaning)
    yield ".SH SEE ALSO"
    yield "The documentation is in the directory \\fBdocs\\fR of the source."


def _roff_prose(text: str) -> Iterator[str]:
    for part in inspect.cleandoc(text).split("\n\n"):
        if part.startswith("\b\n"):
            yield from _roff_code(part[2:])
        else:
            yield ".PP"
            yield _roff(" ".join(part.split()))


def _roff_code(text: str) -> Iterator[str]:
    yield ".PP"
    yield ".nf"
    yield ".RS"
    yield from map(_roff, inspect.cleandoc(text).split("\n"))
    yield ".RE"
    yield ".fi"


def _roff_options(command: click.Command, *, is_common: bool) -> Iterator[str]:
    context = click.Context(command, help_option_names=["-h", "--help"])
    for option in command.get_params(context):
        if not isinstance(option, click.Option):
            continue
        record = option.get_help_record(context)
        if record and (not COMMON.isdisjoint(option.opts)) == is_common:
            yield ".TP"
            yield f".B {_roff(record[0])}"
            yield _roff(record[1])


def _roff(text: str) -> str:
    """Return a line of plain text that roff prints as it is."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
    text = text.replace("…", "...").replace("│", "|")
    text = re.sub(r"[^\x00-\x7f]", lambda found: f"\\[u{ord(found[0]):04X}]", text)
    return f"\\&{text}" if text.startswith(".") else text


# --- exit codes and errors ------------------------------------------------------------------------

SITUATIONS = {
    "asked nothing, and was not approved": Standing(),
    "has open asks": Standing(open_asks=("…",)),
    "started a task with `adjourn run` that is not done": Standing(open_children=("…",)),
    "was approved, and prints the same manifest or none": Standing(was_approved=True),
}
ENDINGS = {
    "0": Exit(code=0),
    "10 or 90": Exit(code=90),
    "any other, or a signal": Exit(code=1),
    "interrupted by Ctrl+C, `pause` or `cancel`": Exit(signal=2, interrupted=True),
    "could not be started": Exit(error="no such command"),
}


def _exit_codes() -> Iterator[str]:
    yield "Exit codes"
    yield "## Of adjourn itself"
    rows = [
        (str(code), meaning, ", ".join(_errors_with(code)) or " ")
        for code, meaning in exits.MEANINGS.items()
    ]
    yield _table(("code", "meaning", "[error codes](errors.md)"), rows)
    yield (
        "`run`, `resume`, `restart` and `fork` exit 0, 1 or 10 for how the task ended, "
        "`wait` for how all its tasks ended: 10 if any needs a person, else 1 if any failed or was canceled, else 0. "
        "`execute` exits 0 when all tasks of the plan have succeeded, 10 when somebody is needed, else 1. "
        "All other verbs exit 0 when they have done what they were asked: `approve` also if it was one of [several approvals](../how-to/four-eyes.md) and others are still missing. "
        "Ctrl+C while nothing of a run is under way (in `wait`, say) exits 130."
    )
    yield (
        "Output that cannot be written, because a disk is full, say, is an error: exit code 1, and a sentence on stderr. What was done "
        "stays done. `run`, `resume`, `restart`, `fork` and `execute` keep the exit code of how their task ended, and print the sentence. "
        "A reader that left (`| head -1`) is no error."
    )
    yield (
        "Exit code 1 with the error code `store` does not always mean that nothing was recorded: where the connection to a "
        "[shared store](../how-to/share-a-store.md#what-goes-wrong) broke after a decision was saved, the decision counts. "
        "Run the same command again: exit code 4, `already_settled`, says who decided, and when."
    )
    yield "## Of a command under adjourn"
    yield "What happens to the task when the process of a run exits, by its exit code and by what it had asked:"
    head = ("exit code", *SITUATIONS)
    yield _table(
        head,
        [
            (ending, *(_what(exit_, standing) for standing in SITUATIONS.values()))
            for ending, exit_ in ENDINGS.items()
        ],
    )
    yield (
        "After an approval, a manifest that differs from the approved one is a new ask. "
        "A process that vanished without a trace is not in this table: "
        "its call is [uncertain](../how-to/recover-after-a-crash.md); "
        "an agent whose session can go on is paused, unless it was making a call."
    )


def _what(exit_: Exit, standing: Standing) -> str:
    return _outcome(find_runner("command").meaning(exit_, standing))


def _outcome(outcome: Outcome) -> str:
    match outcome:
        case Completed():
            return "succeeded"
        case Failed():
            return "failed"
        case Waits():
            return "waits for them"
        case WantsApproval():
            return "waits for approval of its own command"
        case Interrupted():
            return "paused or canceled"


def errors() -> list[type[AdjournError]]:
    """Return every error that a person can be told, the general before the special."""
    return [kind for kind in _tree(AdjournError) if kind.__module__ == AdjournError.__module__]


def _tree(kind: type[AdjournError]) -> Iterator[type[AdjournError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from _tree(below)


def _errors_with(code: int) -> list[str]:
    return [_code(kind.code) for kind in errors() if kind.exit_code == code]


def _errors() -> Iterator[str]:
    yield "Error codes"
    yield (
        "Every error has a code for machines, a sentence for people and, where there is one, a way out. Without `--output json` "
        "the sentence and the way out go to stderr. With it, stdout is one object:"
    )
    sample = Failure(
        error=ErrorDoc(code="not_found", message="no task is called x", way_out="adjourn tasks")
    )
    yield f"```json\n{msgspec.json.format(msgspec.json.encode(sample), indent=2).decode()}\n```"
    yield _table(
        ("code", "exit code", "meaning"),
        [(_code(kind.code), str(kind.exit_code), _first(kind)) for kind in errors()],
    )
    yield (
        "A task that failed or was canceled has an `error` too, in its manifest. "
        "Its code is the task's state: `failed` or `canceled`; its message says why, its way out is the `restart` command."
    )


def _first(kind: type[AdjournError]) -> str:
    return "Anything else." if kind is AdjournError else " ".join((kind.__doc__ or "").split())


# --- JSON -----------------------------------------------------------------------------------------

DOCUMENTS = {
    "run": "Manifest",
    "resume": "Manifest",
    "restart": "Manifest",
    "fork": "Manifest",
    "show": "Manifest",
    "wait": "Manifests: `schema_version` and `tasks`, a list of Manifest, also of one task",
    "pause": "Manifest",
    "cancel": "Manifest",
    "settle": "Manifest",
    "execute": "as `plan show`",
    "plan show": "`schema_version`, `outcome`, which is completed, paused or failed, `plan` and `workspace`, both as paths, `is_held`, which is true after a pause until somebody goes on, "
    "`resume_hint`, the command that goes on, and `tasks`, of each its `id` in the plan, `state`, `task_id`, `runner`, `needs`, "
    "`lacks`, those of its needs that are not done, `in_review`, `is_changed`, `calls_not_made`, `message` and `resume_hint`",
    "inbox": "`schema_version`, `count` of all open asks, `snoozed`, how many of them sleep, `asks`, a list of AskDoc, "
    "and `paused`, a list of PausedDoc; with --everywhere each has its store, and a list stores says which were read",
    "snooze": "`schema_version`, `outcome` (`recorded`) and `asks`, a list of AskDoc",
    "approve": "`schema_version`, `outcome` (`recorded`), `asks`, a list of AskDoc, `tasks`, each task's state by its id, "
    "and `receipts`, a list of Receipt; with --save instead the outcome saved, the file and how many decisions are in it",
    "reject": "as `approve`",
    "answer": "as `approve`",
    "decide": "as `approve`",
    "audit verify": "`schema_version`, `outcome`, which is whole or broken, and `audit`: how many events there are and were "
    "pruned, the head of the chain, the first thing that is broken, and of each receipt whether it holds",
    "audit export": "`schema_version` and `events`, each with its place, task_id, kind, by, at, facts and seal",
    "doctor": "`schema_version`, `outcome`, which is fine or attention, and `findings`: of each its check, whether it is fine, "
    "what it says and the remedy",
    "ask": "`schema_version`, `outcome`, which is answered or paused, `ask_id`, `answer` and `settled_by`",
    "clarify": "`schema_version`, `outcome`, which is answered or paused, and `answers`, by the keys of their questions, or null",
    "worker": "`schema_version` and `workers`, each with its name, pid, pool, active, max_active and since, "
    "of a shared store with its host, too; with --status only",
    "tasks": "`schema_version` and `tasks`: `task_id`, `state`, `runner`, `argv`, `prompt`, `workspace`, `runs`, `session_id`, "
    "`parent_run_id`, `created_at`, `updated_at`, `message`, `calls_not_made`",
    "runs": "`schema_version` and `runs`, a list of RunDoc",
    "logs": "`schema_version`, `run_id`, `stdout` and `stderr`, both as text; with --all instead a list runs of the same",
    "watch": "one document a line for each event: `schema_version`, `store`, `place`, `task_id`, `kind`, `by`, `at` and `facts`",
    "prune": "`schema_version`, `pruned`, a list of task ids, `locks_removed`, a number, and `dry_run`",
    "policy explain": "`schema_version`, `action`, `never`, `effect`, `terms`, `expires_after_ms`, `remind_after_ms`, `escalate_to`, `why`, `parts`: of each its "
    "command, depth, is_auto, effect, doubts and rules; `rules` that match, each with its file, line, rule and whether it "
    "decides; `always_allow`, the rule's id if one decides, and `files`, each with its path, kind and rules",
    "policy check": "`schema_version`, `is_fine`, `problems`, each with its file, line, column and message, and `files`, "
    "each with its path, kind and rules",
    "rules list": "`schema_version` and `rules`: of each its id, tool, arguments, programs, workspace, task, until, is_in_force, "
    "by, at and matched: how many recent calls it would have matched, and of how many",
    "rules add": "`schema_version`, `outcome`, which is added, `action`, what the policies now say of the call, and `rule`",
    "rules revoke": "`schema_version`, `outcome`, which is revoked, and `rules`, a list of ids",
    "config": "`schema_version` and `agent`, the settings: of each its key, value and origin",
    "notify": "`schema_version` and `notifiers`: of each its name, its events, where they go, how many events were "
    "delivered just now, wait and were given up, and the last error; with --test instead a list tests, of each its name, whether it was delivered, and the error",
    "store backup": "`schema_version`, `backup`, the file's path, and `bytes`, its size",
    "store migrate": "`schema_version` and `store`, its name; "
    "with --from instead the directory, and how many tasks, asks and events were moved",
    "store adopt": "`schema_version`, `store`, its directory, and three lists of task ids: `uncertain`, what may have run, "
    "`asked_again`, and `paused`; where it leads to a database, its URL instead of the lists",
    "store accept": "as `store adopt`",
    "store forget": "`schema_version` and `forgotten`, the directories of the stores",
    "store roles": "`schema_version` and `roles`, a list of names",
    "delegate add": "`schema_version` and `delegation`: its id, agent, task, by and until, in milliseconds since 1970",
    "delegate list": "`schema_version` and `delegations`, a list of the same",
    "delegate revoke": "`schema_version` and `revoked`, the same",
    "users add": "`schema_version`, `user`, `link` and `expires_at`",
    "users link": "`schema_version`, `user`, `link` and `expires_at`",
    "users list": "`schema_version` and `users`: for each the name, scopes, passkeys and since when",
    "users remove": "`schema_version` and `removed`, the name",
    "tokens add": "`schema_version`, `token`, this once, `name`, `principal`, `scopes`, `person`, `also`, `created_at`, `created_by`, "
    "`expires_at`, `expired` and `used_at`",
    "tokens list": "`schema_version` and `tokens`: for each the same, without the token",
    "tokens revoke": "`schema_version` and `revoked`, the same",
    "serve": "nothing: the access log is JSON on stderr, with or without the option",
    "setup": "`schema_version` and `setup`: the host, its config, the difference, and check, what the host says",
    "mcp": "messages of MCP, one JSON object a line, with or without the option",
}
"""What each verb prints with `--output json`. A test compares it with what they print."""

MEANINGS = {
    "Manifest.schema_version": "The version of this shape.",
    "Manifest.outcome": "How the task stands or ended.",
    "Manifest.task_id": "The task. It stays the same however often the task pauses.",
    "Manifest.run_id": "The last run; null before the first.",
    "Manifest.checkpoint_id": "Names this pause. Each pause has a new one; `adjourn -c` takes it.",
    "Manifest.session_id": "Stays the same over resumes, is new after a restart.",
    "Manifest.state": "The task's state.",
    "Manifest.exit_code": "The exit code of the newest run's process, once it has left.",
    "Manifest.signal": "The signal that ended it, if one did.",
    "Manifest.pause_reason": "Why it paused.",
    "Manifest.paused_at": "When it paused.",
    "Manifest.agent_message": "The first open ask in the words of the process that asks.",
    "Manifest.resume_hint": "One command that goes on, ready to paste.",
    "Manifest.resumable": "Told where it is false: its agent was stopped before it had saved anything, and must be restarted.",
    "Manifest.final_message": "The last line that it printed; of an agent, its last words.",
    "Manifest.steps_taken": "How many runs it took; of an agent, how many answers of the model.",
    "Manifest.usage": "What the model took, as far as the newest run said.",
    "UsageDoc.run": "In the newest run.",
    "UsageDoc.task": "In all runs of the task.",
    "Spent.input_tokens": "The tokens that it read, cached ones included.",
    "Spent.cached_input_tokens": "Those of them that a cache of the provider had, which cost less.",
    "Spent.output_tokens": "The tokens that it wrote.",
    "Spent.cost": "US dollars, as a decimal number; null where the price is not known.",
    "Manifest.error": "What went wrong.",
    "Manifest.waiting_on": "Tasks that its script, or a tool of its agent, started and that are not done.",
    "Manifest.clarification": "The clarification that waits for its answers, and where its files are.",
    "ClarificationDoc.agent_id": "The task, which the protocol calls the agent.",
    "ClarificationDoc.request_id": "The clarification's own id.",
    "ClarificationDoc.timestamp": "When it was asked.",
    "ClarificationDoc.clarification_path": "Where the request is.",
    "ClarificationDoc.response_path": "Where the response is expected.",
    "ClarificationDoc.checkpoint_path": "Where the checkpoint is; [checkpoint.schema.json](checkpoint.schema.json) is its JSON Schema.",
    "Manifest.workspace": "What changed in the workspace since the pause; `show` tells it.",
    "Manifest.changes": "What the task changed in its workspace, when its work is to be reviewed.",
    "Manifest.resumability": "Whether the session of an agent can still be resumed; `show` tells it of `claude`, `codex` and `acp`.",
    "Manifest.asks": "The asks of the last run.",
    "Manifest.calls": "All calls of an agent, or of a process that asked for something, and how each ended.",
    "ResumabilityDoc.can_be_resumed": "Whether `resume` would go on; nothing is begun in its place where it cannot.",
    "ResumabilityDoc.looks": "What was looked at: the session, the program, the workspace, and the commit that is checked out.",
    "ResumabilityDoc.way_out": "The command that helps where it cannot.",
    "SessionCheck.thing": "What was looked at: `session`, `program`, `workspace`, `commit`.",
    "SessionCheck.fine": "Whether it lets the session go on.",
    "SessionCheck.says": "How it stands, and how it stood when the task left where that is not the same.",
    "Diffstat.files": "The files that changed.",
    "Diffstat.is_whole": "Whether that is all: the look ends after 20,000 files or two seconds.",
    "FileChange.path": "The file, from the workspace.",
    "FileChange.what": "How it changed.",
    "FileChange.lines_added": "How many lines came; null where it is not text, or very large.",
    "FileChange.lines_removed": "How many lines went.",
    "WorkspaceDoc.head_then": "The commit that was checked out when it paused; null if there is no repository, or nobody looked.",
    "WorkspaceDoc.head_now": "The commit that is checked out now.",
    "WorkspaceDoc.ref_then": "The branch that was checked out, as `refs/heads/NAME`.",
    "WorkspaceDoc.ref_now": "The branch that is checked out now.",
    "WorkspaceDoc.changed": "Paths written or made since; directories end in a slash. The first 50, with `--full` all.",
    "WorkspaceDoc.changed_count": "How many there are.",
    "WorkspaceDoc.looked_at": "How many files and directories were looked at.",
    "WorkspaceDoc.is_whole": "Whether that was all: the look ends after 20,000 entries or a second.",
    "ReasonDoc.type": "What kind of pause it is. `unavailable`: a service that an agent needs is away, or refuses; `limit_reached`: it may do no more; "
    "`user_interrupt`: a person or a signal stopped it; `waiting_on`: it waits for tasks that it started, and asks nothing itself.",
    "ReasonDoc.pending_tool_calls": "The calls that need a decision.",
    "ReasonDoc.questions": "The questions that need an answer.",
    "ToolCall.id": "The call's name: what `resume --approve` takes.",
    "ToolCall.name": "The tool. A command under adjourn is the tool `command`.",
    "ToolCall.arguments": "What would run. Of a command: `argv`, `cwd`, and `env`, which adjourn adds to the environment.",
    "ToolCall.files": "Of an agent's call: the files that it names and that links lead elsewhere, with where they lead.",
    "QuestionDoc.question_id": "The question's key: what `resume --answer KEY=TEXT` takes.",
    "QuestionDoc.text": "The question.",
    "QuestionDoc.choices": "The allowed answers; empty if any text will do.",
    "CallDoc.id": "The call's name.",
    "CallDoc.name": "The tool.",
    "CallDoc.digest": "The digest of its bytes.",
    "CallDoc.fate": "How it stands; `not_made`: it was approved, and its agent ended without making it.",
    "CallDoc.arguments": "What it would have done; only of a call that was not made.",
    "PausedDoc.task_id": "The task.",
    "PausedDoc.pause_reason": "Why it is paused.",
    "PausedDoc.message": "The same in a sentence, if there is one.",
    "PausedDoc.paused_at": "Since when.",
    "PausedDoc.resume_hint": "The command that helps, ready to paste.",
    "AskDoc.id": "The ask.",
    "AskDoc.task_id": "The task that it belongs to.",
    "AskDoc.run_id": "The run that left it.",
    "AskDoc.kind": "`approval`, `question` or `uncertain`.",
    "AskDoc.state": "`pending`, or how it was settled.",
    "AskDoc.why": "Why a person is asked: the rule with its file and line, that no rule allows it, or that the program ran and left with an exit code.",
    "AskDoc.last_lines": "The last lines that the program printed before it left with an exit code that asks for approval.",
    "AskDoc.prompt": "What is asked.",
    "AskDoc.choices": "The allowed answers; empty if any text will do.",
    "AskDoc.key": "A question's name.",
    "AskDoc.tool_call_id": "The call that it is about.",
    "AskDoc.digest": "The SHA-256 of the call's canonical bytes.",
    "AskDoc.manifest": "What the process says of it, as it is: the last JSON object that a command printed, or an agent's words.",
    "AskDoc.created_at": "When it was asked.",
    "AskDoc.settled_at": "When it was settled.",
    "AskDoc.settled_by": "Who settled it: `uid:N`, `db:LOGIN`, `key:NAME`, `webhook:NAME`, `file:uid:N`, or `adjourn`.",
    "AskDoc.level": "How much the reply is worth, `L0` to `L2`: see [security](../security.md).",
    "AskDoc.reply": "The value, the reason, the answer or the verdict.",
    "AskDoc.gate": "Whether nothing has run yet: it asks whether the command may start at all.",
    "AskDoc.terms": "What an approval of it needs to count.",
    "AskDoc.replaces": "The ask that was withdrawn for it, because something had changed.",
    "AskDoc.expires_at": "When it expires; expired is rejected.",
    "AskDoc.snoozed_until": "Until when the inbox hides it.",
    "AskDoc.approvals": "How many people must approve, who has, and who is missing; null where one approval from anybody settles it.",
    "AskDoc.remind_at": "When somebody is reminded of it; null if that was done, or no rule says so.",
    "TermsDoc.approvals": "By how many people.",
    "TermsDoc.approvers": "The names of those who may approve; null: everybody with the right to approve.",
    "CountDoc.needed": "How many people must approve.",
    "CountDoc.given": "Who has approved, in order, since the call was edited last.",
    "CountDoc.missing": "How many are missing.",
    "CountDoc.missing_from": "The names of those who can still approve.",
    "ApprovalDoc.person": "The name of the `[[person]]`.",
    "ApprovalDoc.by": "The principal, as the channel said.",
    "ApprovalDoc.level": "What the approval is worth.",
    "ApprovalDoc.at": "When.",
    "AskDoc.original_digest": "Of a call that was approved with other arguments: the digest of what was asked for.",
    "TermsDoc.approver": "Who may approve: `any`, or a `human`.",
    "TermsDoc.not_requester": "Whether it must be somebody else than who started the task.",
    "TermsDoc.signed": "Whether the approval must be signed.",
    "TermsDoc.by_name": "Whether the call must be named: `--approve-all` does not cover it.",
    "TermsDoc.override": "Whether the policy says never: approving needs `--override REASON`, typed by a person.",
    "RunDoc.run_id": "The run: the task id, a dot, and its number.",
    "RunDoc.task_id": "Its task.",
    "RunDoc.state": "How it stands, or how it ended.",
    "RunDoc.provider": "The runner: `command`, `agent`, `claude`, `codex`, or `acp:NAME`.",
    "RunDoc.provider_session_ref": "The runner's own name for the session, if it has one.",
    "RunDoc.resumable": "Whether `resume` can go on from it.",
    "RunDoc.repo_root": "The workspace: the directory that it runs in.",
    "RunDoc.created_at": "When it was claimed.",
    "RunDoc.updated_at": "When it changed last.",
    "RunDoc.paused_at": "When it paused.",
    "RunDoc.pause_reason": "Why it paused.",
    "RunDoc.resumed_from_run_id": "The run that it goes on from.",
    "RunDoc.restart_of_run_id": "The run that it replaces.",
    "RunDoc.superseded_by_run_id": "The run that replaced it.",
    "RunDoc.checkpoint_id": "The checkpoint that it left.",
    "RunDoc.exit_code": "Its exit code.",
    "RunDoc.signal": "The signal that ended it.",
    "RunDoc.message": "Its last line, or why it failed.",
    "RunDoc.usage": "What the model took in it.",
    "RunDoc.ended_at": "When its process had left. Unlike `updated_at`, nothing that happens later changes it.",
    "RunDoc.plan": "Of a task of a plan: the path of the plan.",
    "RunDoc.plan_task_id": "Of a task of a plan: its id in the plan.",
    "Failure.schema_version": "The version of this shape.",
    "Failure.outcome": "Always `failed`.",
    "Failure.error": "What went wrong.",
    "Failure.items": "Of several replies given at once: each, in the order in which it was given.",
    "ItemDoc.ask_id": "The ask, as it was named.",
    "ItemDoc.result": "`refused`, or what would have become of it: `would be approved`.",
    "ItemDoc.error": "Why it was refused.",
    "ErrorDoc.code": "One of the [error codes](errors.md).",
    "ErrorDoc.message": "A sentence for people.",
    "ErrorDoc.way_out": "What helps, mostly a command; null if nothing does.",
}


STRUCTS = (
    Manifest,
    Failure,
    RunDoc,
    AskDoc,
    TermsDoc,
    ReasonDoc,
    ClarificationDoc,
    ToolCall,
    CallDoc,
    QuestionDoc,
    PausedDoc,
    WorkspaceDoc,
    ResumabilityDoc,
    SessionCheck,
    UsageDoc,
    Diffstat,
    FileChange,
    ItemDoc,
    ErrorDoc,
)


def schema() -> dict[str, Any]:
    """Return the JSON Schema of all documents; the top is what most verbs print."""
    _, components = msgspec.json.schema_components(STRUCTS, ref_template="#/$defs/{name}")
    for struct in STRUCTS:
        components[struct.__name__]["required"] = [
            field.encode_name for field in _told_always(struct)
        ]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What adjourn prints with --output json, and writes into pause.json",
        "anyOf": [{"$ref": "#/$defs/Manifest"}, {"$ref": "#/$defs/Failure"}],
        "$defs": components,
    }


def _told_always(struct: type[msgspec.Struct]) -> list[msgspec.structs.FieldInfo]:
    """Return the fields that are always there.

    Msgspec takes each that has a default for one that may be missing.
    """
    fields = msgspec.structs.fields(struct)
    if not struct.__struct_config__.omit_defaults:
        return [field for field in fields if field.default is not msgspec.UNSET]
    return [
        field
        for field in fields
        if field.required or field.default_factory is not msgspec.NODEFAULT
    ]


def _schema_text(document: dict[str, Any]) -> str:
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


def _json() -> Iterator[str]:
    yield "JSON"
    yield (
        "With `--output json` stdout is one JSON document and nothing else, whatever happens. The same shape is in "
        "`.adjourn/session/pause.json`. [manifest.schema.json](manifest.schema.json) is its JSON Schema. "
        "Times are ISO 8601 in UTC. New keys may come; a change that breaks readers raises `schema_version`."
    )
    yield "## What each verb prints"
    yield _table(
        ("verb", "document"), [(_code(verb), document) for verb, document in DOCUMENTS.items()]
    )
    yield "A verb that cannot do what it was asked prints Failure instead. `demo` and `completion` always print text."
    definitions: dict[str, dict[str, Any]] = schema()["$defs"]
    for name, definition in definitions.items():
        if "properties" in definition:
            yield f"## {name}\n\n{definition['description']}"
            yield _table(
                ("key", "type", "there", "meaning"),
                [_field(name, definition, key) for key in definition["properties"]],
            )
    enums = [(name, definition) for name, definition in definitions.items() if "enum" in definition]
    yield "## Words"
    yield _table(
        ("type", "is one of"),
        [(name, ", ".join(map(_code, definition["enum"]))) for name, definition in enums],
    )


def _field(name: str, definition: dict[str, Any], key: str) -> tuple[str, str, str, str]:
    is_always = key in definition.get("required", ())
    return (
        _code(key),
        _type(definition["properties"][key]),
        "always" if is_always else "if it applies",
        MEANINGS[f"{name}.{key}"],
    )


def _type(kind: dict[str, Any]) -> str:
    match kind:
        case {"$ref": str(ref)}:
            return ref.rpartition("/")[2]
        case {"anyOf": list(kinds)}:
            return " or ".join(_type(one) for one in kinds)
        case {"enum": list(words)}:
            return ", ".join(_code(str(word)) for word in words)
        case {"type": "array", "items": items}:
            return f"list of {_type(items)}"
        case _:
            return str(kind["type"])


# --- events ---------------------------------------------------------------------------------------


class Told(NamedTuple):
    """An event as the controller's source tells it."""

    kind: str
    facts: tuple[str, ...]


GAPS: dict[str, Sequence[str]] = {
    "task_{state}": [state.value for state in (TaskState.PAUSED, TaskState.CANCELED)],
    "ask_{settled.state}": [state.value for state in AskState if state is not AskState.PENDING],
    "{wish}_requested": [wish.value for wish in Wish],
}
KINDS = {
    "task_created": "A task was queued.",
    "run_claimed": "A supervisor took the task, for the user of `run` or `resume`, or for a worker (`adjourn`); the gate is shut.",
    "run_adopted": "A worker took over a run whose supervisor had died.",
    "call_executing": "The gate is about to open. From here on only a result or a person moves the call.",
    "program_executed": "What was executed, by digest: the program, and the script that a shell was given.",
    "files_changed": "Files of the call that could not be pinned changed between the last look and the end of the run, or were "
    "changed and `restored`, or it is `unknown` whether they changed.",
    "call_edited": "A person changed the arguments of a call before approving it: the digest that it had, and the one it has.",
    "call_proposed": "An agent wants to make a call: what the policy said of it.",
    "call_let_through": "A command that was judged again may start: by a rule, or because its task has no gate.",
    "call_found": "A call was started before the store was set back: its mark or its result on this machine says so.",
    "call_released": "A call beside an agent provably never started: it can be started again.",
    "start_refused": "A call was about to start and nothing let it: it is withdrawn, and a person is asked.",
    "call_closed": "A call that an agent or a process was handed, or that ran beside an agent, has ended.",
    "call_lost": "What ran a call of an agent vanished without a result; a person is asked when the run has ended.",
    "call_not_made": "A call was approved, and its agent ended without making it. It is withdrawn.",
    "run_completed": "The process left, and the task succeeded.",
    "run_failed": "The process left, and the task failed.",
    "run_waiting": "The process left until a person settles its asks, or tasks that it started are done.",
    "run_settled": "The process left, and its asks had been settled meanwhile: the task is queued.",
    "run_paused": "The process was interrupted, and the task paused.",
    "run_canceled": "The process was interrupted, and the task canceled.",
    "run_lost": "The process vanished without a result; an ask was opened.",
    "run_returned": "The process provably never started: the task is queued again.",
    "ask_opened": "A person is needed; where several people must approve, how many.",
    "approval_given": "One of several people approved, or one of those who may: who, for which bytes, and the how many-th it is.",
    "ask_reminded": "An ask was still open when its rule says to remind of it; `to` is to whom it escalates.",
    "ask_approved": "A person approved.",
    "ask_rejected": "A person rejected.",
    "ask_answered": "A person answered.",
    "ask_settled": "A person recorded whether an uncertain call ran.",
    "ask_snoozed": "Somebody does not want to see it before a moment, in milliseconds since 1970.",
    "ask_woken": "A snooze was taken back.",
    "ask_expired": "Nobody replied in time, which counts as a rejection.",
    "ask_withdrawn": "What was asked is not needed any more.",
    "task_queued": "The last open ask was settled: the task is queued.",
    "task_accepted": "A person approved the work of a task, or took an agent's last words for the end of it: it has succeeded.",
    "task_continued": "A person said something to an agent that was done: its task is queued, in the same session.",
    "limits_changed": "A person resumed a task of the built-in agent with other limits.",
    "task_forked": "A new task was begun from an earlier checkpoint of another, with so many messages of its transcript.",
    "task_refused": "A rejection failed the task.",
    "call_settled": "The verdict on an uncertain call took effect.",
    "task_resumed": "A paused task was queued again.",
    "task_restarted": "A task was queued from nothing.",
    "pause_requested": "A running task was told to pause.",
    "cancel_requested": "A running task was told to end.",
    "task_paused": "A task without a process was paused.",
    "task_canceled": "A task without a process was canceled. `damaged`: what of it could not be read.",
    "task_failed": "A queued task can never be started: its workspace is gone.",
    "task_answered": "A question that belongs to no other task was answered: the task that held it has succeeded.",
    "refused": "Somebody who may not wanted to decide, from inside a run, by MCP or over HTTP: what, and why it was refused.",
    "delegated": "A person let an agent decide for this task and all below it, until a moment in milliseconds since 1970.",
    "delegation_revoked": "A delegation was taken back.",
    "task_pruned": "A task was forgotten. This is the last event of its chain.",
}


MODULES = (
    adjourn.controller.approvals,
    adjourn.controller.decisions,
    adjourn.controller.delegations,
    adjourn.controller.tasks,
    adjourn.controller.plans,
    adjourn.controller.runs,
    adjourn.controller.asks,
    adjourn.controller.batches,
    adjourn.controller.runs,
    adjourn.controller.agents,
    adjourn.controller.transaction,
    adjourn.controller.endings,
    adjourn.controller.edits,
    adjourn.controller.gate,
    adjourn.controller.reasons,
)


def told() -> Iterator[Told]:
    """Yield every event that the controller can tell, as its source has it."""
    for module in MODULES:
        calls = [
            node
            for node in ast.walk(ast.parse(inspect.getsource(module)))
            if isinstance(node, ast.Call)
        ]
        for call in calls:
            if isinstance(call.func, ast.Attribute) and call.func.attr == "tell":
                facts = tuple(word.arg for word in call.keywords if word.arg and word.arg != "by")
                yield from (Told(kind, facts) for kind in _kinds(call.args[1], module))


def _kinds(argument: ast.expr, module: ModuleType) -> list[str]:
    """Return what the argument can be.

    A word, one of a table's words, or a word with a gap, filled.
    """
    match argument:
        case ast.Constant(value=str(word)):
            return [word]
        case ast.Subscript(value=ast.Name(id=table)):
            return list(vars(module)[table].values())
        case _:
            template = re.sub(r"""^f["']|["']$""", "", ast.unparse(argument))
            return [re.sub(r"\{.*\}", word, template) for word in GAPS[template]]


def kinds() -> dict[str, tuple[str, ...]]:
    """Return every kind of event, with the facts that it may carry."""
    found: dict[str, tuple[str, ...]] = {}
    for event in told():
        found[event.kind] = tuple(dict.fromkeys((*found.get(event.kind, ()), *event.facts)))
    return found


def _events() -> Iterator[str]:
    yield "Events"
    yield (
        "The audit trail: every change of a task is told by an event that is written in the same transaction. An event has "
        "the task, a kind, who did it (one of these [names](../security.md#who-may-decide), or `adjourn`), when, and facts. "
        "`adjourn show ID --full` prints a task's events."
    )
    yield "`adjourn audit verify` says whether the trail is whole, `adjourn audit export` prints it."
    yield (
        "The events of a task are a chain: each has a link, the SHA-256 of the link before it and its own canonical bytes. "
        "All links of the store are sealed in a second chain. Changing or removing an event breaks both. "
        "`adjourn prune` removes the content of an event and leaves its link, so that the chains still close."
    )
    found = kinds()
    unknown = set(found) ^ set(KINDS)
    if unknown:
        raise KeyError(
            f"docs/generate.py and the controller do not agree on these kinds of events: {sorted(unknown)}"
        )
    rows = [
        (_code(kind), meaning, ", ".join(map(_code, found[kind])))
        for kind, meaning in KINDS.items()
    ]
    yield _table(("kind", "what happened", "facts, as far as there are any"), rows)


# --- files ----------------------------------------------------------------------------------------


class Kept(NamedTuple):
    """A file or directory of the store: a pattern of its path, its mode, and what it is."""

    path: str
    mode: int
    meaning: str


FILES = (
    Kept("", 0o700, "The store. It belongs to the user who made it; anybody else is refused."),
    Kept(
        ".gitignore",
        0o600,
        "Hides everything here from git, but for `policy.toml` and `supervision.yaml`.",
    ),
    Kept(
        "policy.toml",
        0o600,
        "The project's [policy](policy.md), if it has one. You write it, and may commit it.",
    ),
    Kept(
        "adjourn.db",
        0o600,
        "The truth: an SQLite database in WAL mode. Copy it with `adjourn store backup`, not with `cp`.",
    ),
    Kept(
        "adjourn.db-wal",
        0o600,
        "The newest part of the database. It belongs to `adjourn.db`: never remove it alone.",
    ),
    Kept("adjourn.db-shm", 0o600, "SQLite's index of the file above."),
    Kept(
        "write.lock",
        0o600,
        "The queue of writers. It says what `adjourn.db` was like after the last change.",
    ),
    Kept("edits", 0o700, "Calls that are being edited."),
    Kept("edits/PID", 0o700, "One of them, as long as its editor is open."),
    Kept("edits/PID/call.json", 0o600, "Its arguments."),
    Kept("session", 0o700, "Manifests, for machines that read files."),
    Kept(
        "session/pause.json",
        0o600,
        "The manifest of the newest pause, of whichever task. It stays when the task goes on.",
    ),
    Kept("session/TASK", 0o700, "The manifests of one task."),
    Kept("session/TASK/pause.json", 0o600, "The manifest of the newest pause of this task."),
    Kept("clarifications", 0o700, "Requests for clarification, and the responses to them."),
    Kept(
        "clarifications/TASK.needed.yaml",
        0o600,
        "What a task wants to know. Removed when the task has ended.",
    ),
    Kept(
        "clarifications/TASK.response.yaml",
        0o600,
        "The answers: written by a person, or by adjourn before a resume. Removed when the run that got them has ended.",
    ),
    Kept(
        "clarifications/TASK.refused.json",
        0o600,
        "Why the response was not taken; `show` prints it.",
    ),
    Kept("checkpoints", 0o700, "What agents left that wait for a clarification."),
    Kept(
        "checkpoints/TASK.checkpoint.json",
        0o600,
        "The newest checkpoint of this task; its schema is in the how-to.",
    ),
    Kept(
        "started",
        0o700,
        "A mark of each call that was started, left before it was. Leave it here when you restore a backup.",
    ),
    Kept(
        "started/CALL",
        0o600,
        "Where the files of that start are, and the first digits of the call's digest.",
    ),
    Kept("runs", 0o700, "What the runs left."),
    Kept("runs/RUN", 0o700, "The files of one run."),
    Kept(
        "runs/RUN/stdout",
        0o600,
        "What it printed, byte for byte: the first 16 MiB and, if there was more, the last 1 MiB.",
    ),
    Kept("runs/RUN/stderr", 0o600, "The same for its errors."),
    Kept("runs/RUN/result.json", 0o600, "How it ended, as its shim saw it."),
    Kept("runs/RUN/result.tmp", 0o600, "The room kept for the result while the run is under way."),
    Kept(
        "runs/RUN/answers.json",
        0o600,
        "In a run that follows a clarification: the answers by question id.",
    ),
    Kept("runs/RUN/prompt.md", 0o600, "In such a run: what an agent is told when it goes on."),
    Kept("runs/RUN/shim.json", 0o600, "Who the shim is, by boot, pid and start time."),
    Kept("runs/RUN/shim.lock", 0o600, "Held as long as the shim lives."),
    Kept("runs/RUN/shim.error", 0o600, "A defect of the shim, if it had one."),
    Kept("bin", 0o700, "What comes first on the PATH of a run."),
    Kept(
        "bin/adjourn",
        0o777,
        "A link to the adjourn that started the run. Whatever else lies beside it is removed.",
    ),
    Kept("supervisors", 0o700, "Supervisors that are at work."),
    Kept(
        "supervisors/NAME.lock",
        0o600,
        "Held as long as the supervisor lives. Who holds it is alive, however slow; who does not is dead.",
    ),
    Kept("runs/RUN/feedback.md", 0o600, "In a run that follows a review: what is to change."),
    Kept("plans", 0o700, "Plans that are at work."),
    Kept(
        "plans/NAME.lock",
        0o600,
        "Held by the process that executes a plan in one workspace; names it, or the last one.",
    ),
    Kept("notify", 0o700, "Made when somebody is to be told."),
    Kept("notify/NAME.lock", 0o600, "Held while that notifier is being told."),
    Kept("notify.lock", 0o600, "Held by the process that delivers beside a worker: one per store."),
    Kept("wake", 0o700, "Sockets of commands that wait for a change."),
    Kept(
        "wake/NAME",
        0o600,
        "One command's socket. It gets a datagram after each commit.",
    ),
)


def _files() -> Iterator[str]:
    yield "Files"
    yield (
        "All that adjourn keeps is in one directory, the store: `--store DIR`, else `ADJOURN_STORE`, else the nearest `.adjourn` "
        "from the current directory upwards, else a new `.adjourn` at the root of the git repository, else in the current one. "
        "The search ends at the root of the git repository, the home directory, the border of the file system, another user's "
        "directory, or one that everybody can write."
    )
    yield (
        "Of a [shared store](../how-to/share-a-store.md) the database is a server's. Each machine has such a directory for the "
        "rest of it, in `$XDG_STATE_HOME/adjourn/` or `~/.local/state/adjourn/`, with two more files: `database.json` says where "
        "the database is, `seen.json` how far it was when somebody here last looked."
    )
    yield (
        "Whose a store is, and how far it was, is kept outside of it, in the user's state directory: `stores/ID/key.json` "
        "(0600) has a secret and the place of the store, `stores/ID/seen` (0600) the newest event that was recorded here, `stores/PLACE.json` (0600) which databases were written to from here, without their passwords, `terminals/` (0700) the rows of the last list at each terminal, "
        "and `addresses/` (0700) says which `database.json` outside of the state directory may be followed. "
        "The store keeps its id and a digest of the secret. Without these files it can be looked at, and "
        "[adopted](../how-to/operate-the-store.md#copies); it starts nothing."
    )
    yield (
        "The database is the truth; `session/` is a copy of parts of it. Modes are set explicitly, whatever the umask. "
        "Nothing is written to a temporary directory. Small files are written whole: to a file beside, synced, renamed, "
        "and the directory synced. A file that ends in `.tmp` is being written; after a crash it may be left over."
    )
    yield _table(
        ("path", "mode", "what it is"),
        [
            (_code(f".adjourn/{kept.path}".rstrip("/")), f"{kept.mode:04o}", kept.meaning)
            for kept in FILES
        ],
    )


# --- environment ----------------------------------------------------------------------------------

READ = {
    "ADJOURN_STORE": "The store's directory, or the `postgresql://` URL of one that machines share, unless `--store` names one.",
    "ADJOURN_LISTEN": "Where to listen for changes of a shared store behind a pooler: a `postgresql://` URL, or `off`.",
    "ADJOURN_INSIDE": "The `postgresql://` URL with which processes inside a run use a shared store, if not with their worker's.",
    "ADJOURN_LEASE": "How many seconds a run of a shared store is its supervisor's without a sign of life: 30, or 3 to 3600.",
    "ADJOURN_STORE_KEY": "The key of a store that jobs carry from machine to machine, 32 characters or more; `--key-file` "
    "names a file with it. No process that adjourn starts gets it.",
    "ADJOURN_STATE": "Set inside a run: the user's state directory. `HOME` and `XDG_STATE_HOME` may be others there.",
    "XDG_STATE_HOME": "Where adjourn keeps whose stores are, and the files of a shared store's runs, if it is an absolute path; "
    "else in `~/.local/state`.",
    "HOME": "Where the two directories above are, if the variables do not say; without it the home of the user is taken.",
    "ADJOURN_RUN_ID": "Set inside a run. `ask` asks for that run, `run` makes a child of its task, deciding verbs are refused.",
    "ADJOURN_RUN_KEY": "Set inside a run on a shared store with roles. An agent's login writes for the task of that key only.",
    "XDG_CONFIG_HOME": "Where the user's `adjourn/` with `config.toml`, `policy.toml` and `rules.toml` is, "
    "if it is an absolute path; else in `~/.config`.",
    "NO_COLOR": "If it is set to anything, output has no colour. Without a terminal it has none anyway.",
    "TERM": "`dumb` means no colour, too.",
    "PATH": "Decides which program a command is, as in any shell, and whether a hint says `adjourn` or its whole path.",
    "ADJOURN_AGENT_…": "A setting of the built-in agent, as in `ADJOURN_AGENT_MODEL`; `adjourn config` names them all.",
    "ADJOURN_PAUSE_ON_APPROVAL": "`1`: `run` and `execute` ask before anything starts, unless `--no-pause-on-approval` or the plan says otherwise.",
    "ADJOURN_PROMPT": "`0`: a pause at a terminal asks nobody on the spot.",
    "CI": "If set, a pause at a terminal asks nobody on the spot.",
    "ADJOURN_EXIT_CODES": "`none`: a command that exits 10 or 90 and asked nothing has failed. Otherwise it asks for approval.",
    "ADJOURN_CLAUDE": "Which program `run --runner claude` starts, if not the `claude` on PATH; the task keeps it.",
    "ADJOURN_MCP_SECRET": "The secret of a host, which `adjourn setup` gives it and `adjourn mcp` takes out of its environment.",
    "ADJOURN_CODEX": "Which program `run --runner codex` starts, if not the `codex` on PATH; the task keeps it.",
    "_ADJOURN_COMPLETE": "Used by shell completion; see `adjourn completion --help`.",
}
GIVEN = {
    "ADJOURN_STORE": "The store's directory (of a shared one: its place on this machine), absolute, so that `adjourn` inside "
    "a run finds it from anywhere.",
    "ADJOURN_STATE": "The user's state directory, in which adjourn keeps whose stores are.",
    "ADJOURN_TASK_ID": "The task. The same in every run.",
    "ADJOURN_RUN_ID": "The run: the task id, a dot, and the run's number.",
    "ADJOURN_GRACE": "How many seconds the process has after an interrupt before it is killed.",
    "ADJOURN_CALL_ID": "The call: `TASK.tc_N`. The same on every attempt at the same call, so it serves as an idempotency key.",
    "AUTO_APPROVAL": "Set only in a run that an approval started: the value that was approved with, `approved` by default.",
    "PATH": "Begins with a directory that holds nothing but the `adjourn` that runs it.",
}
AT_TIMES = {
    "ADJOURN_RUN_KEY": "On a shared store with roles: what an agent's login shows to write for this task and no other.",
    "ADJOURN_FEEDBACK": "In a run that follows a review which asked for changes: a file with what is to change.",
    "ADJOURN_ANSWERS": "In a run that follows a clarification: a JSON file with the answers by question id.",
    "ADJOURN_RESUME_PROMPT": "In such a run: a Markdown file that tells an agent how to go on.",
    "ADJOURN_SHOW_CALLS": "Set by `run` and `resume` at a terminal, for an agent's driver: it prints each call and how it ended on stderr.",
    "ADJOURN_VERBOSE": "Set by `--verbose`, and handed down: the library says each step of a clarification on stderr.",
}
GRANTED = {
    "ADJOURN_GRANT_FD": "The descriptor from which the process can read, once, the proof of its approval: one JSON object with "
    "`call_id`, `digest`, `nonce`, `approved_by` and `value`.",
}


def _environment() -> Iterator[str]:
    yield "Environment variables"
    yield "## Read by adjourn"
    yield _variables(READ)
    yield "## Given to a command under adjourn"
    yield (
        "A run inherits the environment of the command that starts it (`run`, `resume`, a worker …), less `AUTO_APPROVAL` and every `ADJOURN_*` "
        "but the user's settings (`ADJOURN_AGENT_…`, `ADJOURN_PAUSE_ON_APPROVAL`, `ADJOURN_EXIT_CODES`, `ADJOURN_CLAUDE`, `ADJOURN_CODEX`): "
        "an approval that was given to another run never leaks into this one. Then these are set:"
    )
    yield _variables(GIVEN)
    yield "## Given at times"
    yield _variables(AT_TIMES)
    yield "## Given to a command that was approved"
    yield _variables(GRANTED)


def _variables(meanings: dict[str, str]) -> str:
    return _table(
        ("variable", "meaning"), [(_code(name), meaning) for name, meaning in meanings.items()]
    )


# --- the user's config ----------------------------------------------------------------------------

TOLD = {
    "id": "Names the event: the same however often it is told. No two events of any store have the same.",
    "event": "What it is to those who are told: the first column of the table above.",
    "kind": "The [event](events.md) itself.",
    "at": "When it happened.",
    "by": "Who did it.",
    "ask_id": "The ask that a decision is about.",
    "text": "All of it for people: safe to show, with the command that goes on.",
}


AGENT_KEYS = {
    "model": "`openai:NAME` or `anthropic:NAME`.",
    "base_url": "Where the model's server is, if it is one of your own.",
    "key_variable": "The environment variable that holds the key. Without it, `OPENAI_API_KEY` or `ANTHROPIC_API_KEY`.",
    "instructions": "What the model is told first.",
    "on_text": "`pause` or `complete`: whether words without a tool call are a question, or the end. Without it, `pause`.",
    "max_steps": "How many answers of the model a task may have. Without it, 100.",
    "max_tokens": "How many tokens a task may use. Without it, any number.",
    "timeout": "Seconds that one answer of the model may take. Without it, 600.",
    "tries": "How often the model is asked before it is given up on. Without it, 5.",
    "stream": "Whether answers are shown as they come. Without it, `true`.",
    "clarify": "Whether the model is offered the tool `ask`. Without it, `false`.",
    "output_limit": "How many characters of a result the model gets. Without it, 30,000.",
    "mcp": "A file with `mcpServers`; a relative path begins at the config's directory.",
    "servers": "MCP servers, each a table `[agent.servers.NAME]` with `command`, `args` and `env`, or `url` and `headers`; "
    "`${NAME}` is taken from the environment when it is used.",
    "functions": "Whether Python functions of installed packages are tools. Without it, `true`.",
    "input_price": "US dollars for a million tokens that go in, if the price is not known.",
    "output_price": "The same for those that come out.",
}


TUI_KEYS = {
    "theme": "A theme of Textual. Without it, `ansi-dark`: the colours of the terminal.",
    "list": "How many percent of the width the list takes, from 20 to 80. Without it, 40.",
    "keys": 'Other keys for some actions, a table: `{ approve = "y" }`.',
}
ACP_KEYS = {
    "command": 'What starts it, word by word: `["opencode", "acp"]`.',
    "env": "Variables that it gets, a table; `${NAME}` is taken from the environment when it is used.",
    "login": "The method of `authenticate`, where the agent insists on it.",
    "mode": "The mode in which it asks. adjourn sets it at the start and after each resume.",
    "asks_at_once": "`true`: it sends all requests of one answer before it waits.",
    "keeps_shell": "`true`: its commands share one shell, so that nobody knows in which directory they run.",
    "confirms_all": "`true`: it asks once for all calls that are pending.",
    "is_sandboxed": "`true`: it asks only about what leaves its own sandbox. What it does inside is not put before anybody.",
    "waits_a_minute": "`true`: a session is lost if it is loaded in the wall-clock minute of its start; adjourn waits.",
    "session_files": "Where it keeps a session: a pattern below the home, with `{session}`. adjourn keeps a copy at each pause.",
    "title_is_call": "`true`: it shows nothing but a title, and you say that the title is what it runs. Otherwise such a call cannot be approved.",
    "trust": "`true`: it runs under a gate although nobody has seen that it asks.",
}


def _config() -> Iterator[str]:
    yield "The user's config"
    yield (
        "`$XDG_CONFIG_HOME/adjourn/config.toml`, without that variable `~/.config/adjourn/config.toml`. "
        "A file that others can write is not followed. A project has no such file. "
        "What is wrong in it is said with file, table and key: `adjourn notify --check`. "
        "It never keeps a command from doing its work, but for `redact`: as long as that cannot be used, nothing is started."
    )
    yield "## `pause_on_approval`"
    yield (
        "`true`, above all tables: `run` and `execute` ask before anything starts, unless `--no-pause-on-approval` or the plan says otherwise. "
        "`ADJOURN_PAUSE_ON_APPROVAL` says it for one shell. Claude Code, Codex and ACP agents ask in any case, unless they are told not to."
    )
    yield "## `exit_codes`"
    yield (
        '`"none"`, above all tables: a command that exits 10 or 90 and asked nothing has failed, as with `run --exit-codes none`. '
        'Otherwise (`"ask"`) it [asks for approval](../how-to/approve-a-command.md) of its own command line. `ADJOURN_EXIT_CODES` says it for one shell.'
    )
    yield "## `redact`"
    yield (
        "A list of up to 100 patterns, above all tables: what they match is taken out of [copies](../how-to/keep-secrets.md), "
        "in addition to what is known to be a secret."
    )
    yield "## `[agent]`"
    yield (
        "What the [built-in agent](../how-to/run-an-agent.md) is set to, unless a flag or the environment "
        "(`ADJOURN_AGENT_MODEL`, …) says otherwise. `adjourn config` shows all of it. An unknown key is an error."
    )
    yield _table(("key", "meaning"), [(_code(key), meaning) for key, meaning in AGENT_KEYS.items()])
    yield "## `[acp.NAME]`"
    yield (
        "An [agent that speaks ACP](../how-to/acp.md), for `run --runner acp:NAME`: one of your own, or what is different for one that adjourn knows. "
        "A task keeps what it began with. An unknown key is an error."
    )
    yield _table(("key", "meaning"), [(_code(key), meaning) for key, meaning in ACP_KEYS.items()])
    yield "## `[tui]`"
    yield "How the [TUI](../how-to/tui.md) looks. An unknown key is an error."
    yield _table(("key", "meaning"), [(_code(key), meaning) for key, meaning in TUI_KEYS.items()])
    yield "## `[[notify]]`"
    yield "One table for each who is [to be told](../how-to/notifications.md). An unknown key is an error."
    first = {"on": COMMON_KEYS["on"]}
    own = {key: meaning for kind in NOTIFIERS.values() for key, meaning in kind.keys.items()}
    keys = {**first, **own, **COMMON_KEYS}
    yield _table(("key", "meaning"), [(_code(key), meaning) for key, meaning in keys.items()])
    yield _table(
        ("in `on`", "notifies of these events"),
        [(_code(occasion), _events_of(occasion)) for occasion in Occasion],
    )
    yield "## `[[person]]`"
    yield "Somebody whom rules [may name](../how-to/four-eyes.md), and who counts once, whatever the channel. An unknown key is an error."
    yield _table(
        ("key", "meaning"), [(_code(key), meaning) for key, meaning in PERSON_KEYS.items()]
    )
    yield "## `[[team]]`"
    yield "People whom rules name together, as `team:NAME`."
    yield _table(("key", "meaning"), [(_code(key), meaning) for key, meaning in TEAM_KEYS.items()])
    yield "## `[web]`"
    yield "A proxy that logs people in for `adjourn serve`. See [the web inbox](../how-to/web.md)."
    yield _table(("key", "meaning"), [(_code(key), meaning) for key, meaning in WEB_KEYS.items()])
    yield "## `[[principal]]`"
    yield "One table for each who [may do something](../security.md) beside the owner of a store. An unknown key is an error."
    yield _table(
        ("key", "meaning"), [(_code(key), meaning) for key, meaning in PRINCIPAL_KEYS.items()]
    )
    yield "## `[[webhook]]`"
    yield "One table for each who decides by [signed requests](../security.md#webhooks). An unknown key is an error."
    yield _table(
        ("key", "meaning"), [(_code(key), meaning) for key, meaning in WEBHOOK_KEYS.items()]
    )
    yield "## Signers"
    yield "Two keys at the top of the file, for [signed decisions](../how-to/sign-decisions.md)."
    yield _table(("key", "meaning"), [(_code(key), meaning) for key, meaning in FILE_KEYS.items()])
    yield "## What is told"
    yield "The [manifest](json.md) of the task as it stands when this is sent, and:"
    extra = [field for field in Notice.__struct_fields__ if field not in Manifest.__struct_fields__]
    yield _table(("key", "meaning"), [(_code(name), TOLD[name]) for name in extra])


def _events_of(occasion: Occasion) -> str:
    kinds = [_code(kind) for kind, told in OCCASIONS.items() if told is occasion]
    return ", ".join(kinds) + (
        ", and `call_settled` if it ran" if occasion is Occasion.COMPLETION else ""
    )


# --- policies -------------------------------------------------------------------------------------


def _policy() -> Iterator[str]:
    yield "Policies"
    yield (
        "The user's `$XDG_CONFIG_HOME/adjourn/policy.toml`, without that variable `~/.config/adjourn/policy.toml`; the project's "
        "`policy.toml` in the store; and, where the store is elsewhere, the nearest `.adjourn/policy.toml` from the workspace "
        "upwards that does not belong to another user. All of them count together, "
        "and [the strictest rule wins](../how-to/write-a-policy.md#how-rules-meet). "
        "An unknown key is an error, and then nothing runs; `adjourn policy check` names its line and column."
    )
    yield (
        f"A file has at most 1 MiB and {MOST_RULES:,} rules. The user's must be the user's own; the project's must be "
        "a plain file, no link, and may not say `auto`, `effect` or `notify`."
    )
    yield "## At the top"
    yield _table(
        ("key", "meaning"), [(_code(key), meaning) for key, meaning in POLICY_KEYS.items()]
    )
    yield "## `[[rule]]`"
    yield _table(("key", "meaning"), [(_code(key), meaning) for key, meaning in RULE_KEYS.items()])
    yield (
        "How patterns are written is in the [how-to](../how-to/write-a-policy.md#patterns). Always-allow rules are kept in "
        "`rules.toml` beside the user's policy; `adjourn rules` writes it."
    )


# --- plans ----------------------------------------------------------------------------------------


def _plan() -> Iterator[str]:
    yield "Plans"
    yield (
        "A plan is a TOML file of tasks that need one another; `adjourn execute` runs them, `adjourn plan show` draws them. "
        f"[How that goes](../how-to/plans.md). It has at most 1 MiB and {MOST_TASKS:,} tasks. "
        "An unknown key, an unknown id or needs that form a circle are told with line and column, and nothing starts."
    )
    yield "## At the top"
    yield _table(("key", "meaning"), [(_code(key), meaning) for key, meaning in PLAN_KEYS.items()])
    yield "## `[[task]]`"
    *most, last = [f'`"{name}"`' for name in OURS]
    names = {"runners": f"{', '.join(most)} or {last}", "command": COMMAND, "agent": DEFAULT_AGENT}
    meanings = {**TASK_KEYS, "runner": TASK_KEYS["runner"].format_map(names)}
    yield _table(("key", "meaning"), [(_code(key), meaning) for key, meaning in meanings.items()])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
