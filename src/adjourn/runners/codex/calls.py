"""The calls of Codex: judged as a batch, handed out once each, and closed with their results."""

import os
from collections.abc import Container, Mapping, Sequence

import msgspec

from adjourn.core.agent.calls import CallResult, Held, Proposed, cut
from adjourn.core.call import Call, arguments_of, canonical
from adjourn.core.policy.locations import NOT_TOLD
from adjourn.core.states import CallState
from adjourn.ports.drive import Drive
from adjourn.runners.call_batch import Decided, HandedOut, Member, judge_batch
from adjourn.runners.codex import words
from adjourn.runners.codex.app_server import Thread
from adjourn.runners.codex.hook import HOOK
from adjourn.runners.codex.memory import MemoryKeeper, Put, Ran
from adjourn.runners.codex.protocol import PATCH_TOOL, SHELL_TOOL, ThreadItem, WantedCall, is_patch
from adjourn.runners.codex.session import UNKNOWN_DETAILS, Details, Rollout

_ESCALATED = "require_escalated"
_APPLIES_PATCH = "--codex-run-as-apply-patch"  # makes the binary the tool of that name
_EXECUTABLE = frozenset({SHELL_TOOL, PATCH_TOOL})
_LONGEST = 100_000  # bytes; the kernel takes no word of more than 128 KiB, and a patch is one
OUTSIDE = "none"
_RUNS_ON = "running with session ID"  # what the model is told about a command that still runs


class CodexHeldCalls:
    """What Codex wants to do, is doing, and has done in one run."""

    def __init__(self, drive: Drive, keeper: MemoryKeeper, *, sandbox: str) -> None:
        self._drive = drive
        self._keeper = keeper
        self._sandbox = sandbox
        self._said = ""
        self._handed_out = HandedOut(drive)
        self._call_of: dict[
            str, str
        ] = {}  # by its item, the call of the model that each is part of

    def take(self, wanted: Sequence[WantedCall], rollout: Rollout, *, said: str | None) -> bool:
        """Take a whole batch of calls, if all of them may run now; else none of them runs.

        `said` are the model's last words.
        """
        self._said = said or ""
        members = [
            Member(self._proposed(each, rollout), (_fingerprint(each.body),)) for each in wanted
        ]
        judged = judge_batch(self._drive, members, decided=self._approved_before())
        calls = [held.call for held in judged if held.call]
        put = [
            Put(item=each.item, call=rollout.call_of(each.item), name=call.tool_call_id)
            for each, call in zip(wanted, calls, strict=True)
        ]
        self._keeper.remember(put=tuple(put))
        self._call_of |= {each.item: each.call for each in put}
        may_run = all(call.state is CallState.APPROVED for call in calls)
        return may_run and self._hand_out([each.item for each in wanted], calls)

    def placed(self, wanted: WantedCall, rollout: Rollout) -> WantedCall:
        """Add to a command what its request does not tell: its shell, its directory, its sandbox.

        Some versions tell a hook the `workdir` of the call, others the directory of the thread,
        which is the workspace. What a script of the model calls is not in the thread's file:
        nobody knows how it would run.
        """
        if wanted.tool != SHELL_TOOL:
            return wanted
        call = next((call for call in rollout.open_calls if call.id == wanted.item), None)
        details = call.details if call else UNKNOWN_DETAILS
        shell = [details.shell or rollout.shell, "-lc" if details.login is not False else "-c"]
        arguments = {"shell": shell} | wanted.arguments | {"sandbox": self._sandbox_of(details)}
        workspace = self._drive.task.spec.workspace
        if wanted.method == HOOK and wanted.arguments.get("cwd") == workspace and details.workdir:
            is_told = details.workdir != NOT_TOLD
            arguments |= (
                {"cwd": _directory(workspace, details.workdir)}
                if is_told
                else {"workdir": NOT_TOLD}
            )
        return msgspec.structs.replace(wanted, arguments=arguments)

    def _sandbox_of(self, details: Details) -> str:
        asked = details.sandbox_permissions
        if asked == _ESCALATED or details.with_escalated_permissions:
            return OUTSIDE
        return self._sandbox if asked in {None, "use_default"} else str(asked)

    def _approved_before(self) -> list[Decided]:
        """Return the calls that Codex was told to repeat, and has not yet."""
        found = [self._drive.held(name) for name in self._keeper.memory.told]
        return [
            Decided(held, frozenset({_fingerprint(held.call.body)}))
            for held in found
            if held and held.call and held.call.state is CallState.APPROVED
        ]

    def _proposed(self, wanted: WantedCall, rollout: Rollout) -> Proposed:
        cell = rollout.call_of(wanted.item)
        before = [
            f"Its script has already run {each.told}"
            for each in self._keeper.memory.ran
            if each.call == cell
        ]
        said = "\n".join(filter(None, [self._said, wanted.words, *before]))
        return Proposed(
            tool=wanted.tool,
            body=wanted.body,
            label=wanted.item,
            words=said or None,
            editable=_editable(wanted.arguments),
        )

    def _hand_out(self, items: Sequence[str], calls: Sequence[Call]) -> bool:
        """Take all calls of a batch out of the store, or none.

        Before the first is answered nothing runs.
        """
        for item, call in zip(items, calls, strict=True):
            if self._handed_out.hand_out(item, call) is None:
                for earlier in self._handed_out.calls:
                    self._handed_out.close(earlier, CallResult(ok=False, error=words.NOT_ASKED))
                return False
        return True

    def end(self, item: ThreadItem, rollout: Rollout) -> bool:
        """Close a call that has ended; return whether it was one that had been handed out."""
        name, call = item.id, self._handed_out.calls.get(item.id)
        if call is None:
            return False
        result, cell = _result(item), rollout.call_of(name)
        if cell != name:
            ran = Ran(
                call=cell,
                line=words.line_of(call),
                output=result.output,
                exit_code=result.exit_code,
            )
            self._keeper.remember(ran=(*self._keeper.memory.ran, ran))
        self._handed_out.close(name, result)
        return True

    @property
    def has_open_calls(self) -> bool:
        """Whether any handed-out call has no result yet."""
        return bool(self._handed_out.calls)

    @property
    def may_be_repeated(self) -> tuple[str, ...]:
        """The names of the calls that Codex was told to repeat, and has not yet."""
        approved = [decided.held.call for decided in self._approved_before()]
        return tuple(call.tool_call_id for call in approved if call)

    def close_refused(self, rollout: Rollout, begun: Container[str]) -> None:
        """Close the calls that Codex itself did not make after all, say a patch that does not fit.

        Nothing was begun of them.
        """
        for item in [name for name in self._handed_out.calls if name not in begun]:
            call = self._call_of.get(item, item)
            told = rollout.closed.get(call)
            if told is not None and _RUNS_ON not in told and call not in rollout.aborted:
                refused = CallResult(ok=False, error=words.REFUSED, output=told)
                self._handed_out.close(item, refused)

    def running(self, rollout: Rollout, items: Mapping[str, ThreadItem]) -> list[str]:
        """Return the calls that still run, some of them while the model has gone on."""
        return [
            name
            for name in self._handed_out.calls
            if (name in items and items[name].is_under_way)
            or _RUNS_ON in self._told_of(name, rollout)
        ]

    def _told_of(self, item: str, rollout: Rollout) -> str:
        return rollout.closed.get(self._call_of.get(item, item), "")

    def cut_off(
        self,
        rollout: Rollout,
        printed: Mapping[str, str],
        *,
        names: Sequence[str] | None = None,
        why: str,
    ) -> list[Call]:
        """Close calls that were being made when the run ended.

        All, or these; the model is told about each when it goes on.
        """
        handed = self._handed_out.calls
        cut_off = {item: handed[item] for item in (handed if names is None else names)}
        # Where the model has gone on meanwhile, no output can tell it.
        untold = [
            call.tool_call_id for item, call in cut_off.items() if self._told_of(item, rollout)
        ]
        self._keeper.remember(cut=(*self._keeper.memory.cut, *untold))
        for item in cut_off:
            output, left_out = cut(printed.get(item, ""))
            result = CallResult(ok=False, error=why, output=output, left_out=left_out)
            self._handed_out.close(item, result)
        return list(cut_off.values())

    def execute(self, thread: Thread, parts: Sequence[tuple[Put, Held]]) -> bool:
        """Run what was approved, as Codex would have.

        Say whether no person has to be asked again.
        """
        for put, held in parts:
            if (
                held.call
                and held.call.state is CallState.APPROVED
                and _can_execute(thread, held.call)
            ):
                if not self._hand_out([put.item], [held.call]):
                    return False
                handed = self._handed_out.calls[put.item]
                self._handed_out.close(put.item, _executed(thread, handed))
        return True


def _directory(cwd: str, workdir: str) -> str:
    """Return the directory that a call names.

    Codex takes `..` off by the words alone. Where a link changes what that means, the path is left
    as it is: the policy takes a path with `..` for a directory that nobody knows.
    """
    named = os.path.join(cwd, workdir)
    plain = os.path.normpath(named)
    return plain if os.path.realpath(plain) == os.path.realpath(named) else named


def _editable(arguments: Mapping[str, object]) -> bytes | None:
    """Return what a person may change of a call: the text of a command, and nothing around it."""
    if not isinstance(arguments.get("command"), str):
        return None
    fixed: dict[str, object] = {
        name: {"enum": [value]} for name, value in arguments.items() if name != "command"
    }
    properties = fixed | {"command": {"type": "string"}}
    schema = {
        "type": "object",
        "properties": properties,
        "required": sorted(properties),
        "additionalProperties": False,
    }
    return msgspec.json.encode(schema)


def _fingerprint(body: bytes) -> str:
    """Return what two requests for the same call have in common."""
    parts = msgspec.json.decode(body)
    return canonical([parts["tool"], parts["arguments"]]).decode()


def _can_execute(thread: Thread, call: Call) -> bool:
    """Say whether a call can be made without the model; one that cannot is left to be repeated."""
    if call.tool not in _EXECUTABLE:
        return thread.has_tool(call.tool)
    return len(call.body) <= _LONGEST and not is_patch(arguments_of(call.body).get("command"))


def _executed(thread: Thread, call: Call) -> CallResult:
    if call.tool not in _EXECUTABLE:
        return thread.call_tool(call.tool, arguments_of(call.body))
    match arguments_of(call.body):
        case {
            "command": str(text),
            "shell": [str(shell), str(option)],
            "cwd": str(cwd),
            "sandbox": sandbox,
        }:
            return thread.execute([shell, option, text], cwd=cwd, is_sandboxed=sandbox != OUTSIDE)
        case {"command": list(argv), "cwd": str(cwd), "sandbox": sandbox}:
            return thread.execute(
                [str(word) for word in argv], cwd=cwd, is_sandboxed=sandbox != OUTSIDE
            )
        case {"patch": str(text), "cwd": str(cwd)}:
            return thread.execute([thread.binary, _APPLIES_PATCH, text], cwd=cwd, is_sandboxed=True)
        case _:
            return CallResult(ok=False, error="it cannot be executed: its words cannot be read")


def _result(item: ThreadItem) -> CallResult:
    given = item.aggregated_output or ""
    if item.type == "mcpToolCall":
        given = msgspec.json.encode(item.result or item.error).decode()
    output, left_out = cut(given)
    return CallResult(
        ok=item.status == "completed", output=output, exit_code=item.exit_code, left_out=left_out
    )
