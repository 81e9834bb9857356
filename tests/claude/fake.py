#!/usr/bin/env python3
"""A Claude Code that is none: it prints, asks its hook, keeps its session and stops as the real one was seen to do.

What the model says it reads from the file that FAKE_CLAUDE names; FAKE_FAULT names one thing that goes wrong.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

VERSION = os.environ.get("FAKE_VERSION", "2.1.325")
FAULT = os.environ.get("FAKE_FAULT", "")
TERMINATED = 143
HELD = frozenset({"deny", "defer"})

Body = dict[str, Any]


class Fake:
    """One process of Claude Code."""

    def __init__(self, argv: list[str]) -> None:
        self.argv = argv
        self.prompt = argv[argv.index("--") + 1] if "--" in argv else (sys.stdin.read() or None)
        hooks = json.loads(self._value("--settings"))["hooks"]
        self.hook = hooks["PreToolUse"][0]["hooks"][0]["command"]
        self.first_hook = hooks["SessionStart"][0]["hooks"][0]["command"]
        self.turns: list[Body] = json.loads(Path(os.environ["FAKE_CLAUDE"]).read_text())
        ref = self._option("--resume=")
        self.session = Path(ref).stem if ref else self._option("--session-id=") or ""
        munged = "".join(char if char.isalnum() else "-" for char in str(Path.cwd()))
        home = Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path(os.environ["HOME"]) / ".claude")
        self.file = (
            Path(ref)
            if ref and ref.startswith("/")
            else home / "projects" / munged / f"{self.session}.jsonl"
        )
        self.is_resumed = bool(ref)
        self.entries: list[Body] = []
        self.tool: subprocess.Popen[str] | None = None

    def _value(self, name: str) -> str:
        return self.argv[self.argv.index(name) + 1]

    def _option(self, name: str) -> str | None:
        return next((word.removeprefix(name) for word in self.argv if word.startswith(name)), None)

    # --- its session ------------------------------------------------------------------------------

    def open(self) -> None:
        """Find the session that is to go on, or begin one."""
        if not self.is_resumed:
            if self.file.exists():
                leave(1, f"Error: Session ID {self.session} is already in use.")
            return
        if not self.file.exists() or FAULT == "no session":
            leave(1, f"No conversation found with session ID: {self.session}")
        self.entries = [json.loads(line) for line in self.file.read_text().splitlines()]

    def write(self, kind: str, **what: Any) -> None:
        """Add to the session's file."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        entry = {"type": kind, "sessionId": self.session, **what}
        self.entries.append(entry)
        if FAULT == "writes late" and kind != "user":
            return
        with self.file.open("a") as file:
            file.write(json.dumps(entry, separators=(",", ":")) + "\n")

    def say(self, kind: str, **what: Any) -> None:
        """Print an event."""
        print(
            json.dumps(
                {"type": kind, "session_id": self.session, "parent_tool_use_id": None, **what}
            ),
            flush=True,
        )

    # --- what it does -----------------------------------------------------------------------------

    def run(self) -> None:
        """Go on, or begin."""
        if FAULT != "asks nobody from the start":
            self._run_hook(self.first_hook, "SessionStart", "{}")
        marker = next(
            (entry for entry in reversed(self.entries) if entry["type"] == "deferred"), None
        )
        open_marker = (
            marker
            if marker and not self._result_of(marker["call"]["id"]) and FAULT != "no marker"
            else None
        )
        if open_marker:
            self._refire(open_marker["call"])
        elif self.is_resumed and self.prompt is None:
            leave(
                1,
                "Error: No deferred tool marker found in the resumed session. Provide a prompt to continue.",
            )
        self.say("system", subtype="init", claude_code_version=VERSION, permissionMode="dontAsk")
        if self.prompt is not None:
            self.write("user", message={"role": "user", "content": self.prompt})
        self._turns()

    def _result_of(self, call: str) -> Body | None:
        return next(
            (
                entry
                for entry in self.entries
                if entry["type"] == "result" and entry["call"] == call
            ),
            None,
        )

    def _refire(self, call: Body) -> None:
        self.say("command_lifecycle", state="started")
        if FAULT.startswith("asks nobody"):
            time.sleep(1)  # the real one is quicker; a test must not depend on who is
        decision = self._ask(call)
        if decision["permissionDecision"] == "defer":
            self._deferred(call)
        self._finish(call, decision)

    def _turns(self) -> None:
        while True:
            turn = self.turns[sum(entry["type"] == "assistant" for entry in self.entries)]
            time.sleep(turn.get("delay", 0))
            if turn.get("error"):
                self._result(
                    is_error=True,
                    result=turn["error"],
                    terminal_reason="api_error",
                    api_error_status=turn["status"],
                    code=1,
                )
            self._message(turn)
            if not turn.get("calls"):
                self._result(result=turn["text"])
            self._batch(turn["calls"])

    def _message(self, turn: Body) -> None:
        name = f"msg_{len(self.entries)}"
        streams = not turn.get("whole")
        blocks = [
            {"type": "text", "text": turn["text"]},
            *({"type": "tool_use", **call} for call in turn.get("calls", [])),
        ]
        if streams:
            self.say("stream_event", event={"type": "message_start", "message": {"id": name}})
        stop = None if streams else "tool_use"
        for block in blocks:
            self.say(
                "assistant",
                message={"id": name, "role": "assistant", "content": [block], "stop_reason": stop},
            )
        if FAULT != "keeps no message":
            self.write("assistant", message={"id": name, "content": blocks, "stop_reason": stop})
        if streams and FAULT != "never stops":
            self.say("stream_event", event={"type": "message_stop"})

    def _batch(self, calls: list[Body]) -> None:
        decisions = [self._ask(call) for call in calls]
        deferred = [
            call
            for call, decision in zip(calls, decisions, strict=True)
            if decision["permissionDecision"] == "defer"
        ]
        for call, decision in zip(calls, decisions, strict=True):
            if decision["permissionDecision"] != "defer":
                self._finish(call, decision)
        if deferred:
            self.write("deferred", call=deferred[-1])
            self._deferred(deferred[-1])
        if any(not decision.get("continue", True) for decision in decisions):
            self._result(result="", terminal_reason="hook_stopped", stop_reason="hook_stopped")

    def _ask(self, call: Body) -> Body:
        """Ask the hook.

        As the real one does under dontAsk, take everything that is not a clear yes for a no.
        """
        if FAULT.startswith("asks nobody"):
            return {"permissionDecision": "allow"}
        asks = {
            "session_id": self.session,
            "cwd": os.getcwd(),
            "tool_name": call["name"],
            "tool_input": call["input"],
        }
        asks |= {"tool_use_id": call["id"], "hook_event_name": "PreToolUse"}
        if call.get("agent_id"):
            asks["agent_id"] = call["agent_id"]
        done = self._run_hook(self.hook, "PreToolUse", json.dumps(asks))
        if done.returncode:
            return {"permissionDecision": "deny", "permissionDecisionReason": done.stderr.strip()}
        said: Body = json.loads(done.stdout)
        decision: Body = said["hookSpecificOutput"] | {"continue": said.get("continue", True)}
        return decision

    def _run_hook(self, command: str, moment: str, asks: str) -> "subprocess.CompletedProcess[str]":
        about = {"hook_id": os.urandom(8).hex(), "hook_event": moment}
        self.say("system", subtype="hook_started", **about)
        done = subprocess.run(
            ["sh", "-c", command], input=asks, capture_output=True, text=True, check=False
        )
        self.say("system", subtype="hook_response", stdout=done.stdout, stderr=done.stderr, **about)
        return done

    def _finish(self, call: Body, decision: Body) -> None:
        if decision["permissionDecision"] == "deny":
            self._returned(
                call,
                f"PreToolUse:{call['name']} hook error: {decision['permissionDecisionReason']}",
                is_error=True,
            )
            return
        arguments = decision.get("updatedInput") or call["input"]
        if call["name"] == "AskUserQuestion":
            self._returned(
                call, f"Your questions have been answered: {arguments['answers']}", is_error=False
            )
            return
        self._returned(call, self._bash(str(arguments["command"])), is_error=False)

    def _bash(self, command: str) -> str:
        self.tool = subprocess.Popen(
            ["bash", "-c", command],
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            stdin=subprocess.DEVNULL,
        )
        if FAULT == "dies at a tool":
            time.sleep(0.3)
            os.kill(os.getpid(), signal.SIGKILL)
        return self.tool.communicate()[0]

    def _returned(self, call: Body, content: str, *, is_error: bool) -> None:
        self.write("result", call=call["id"], content=content)
        if FAULT != "tells no result":
            block = {
                "type": "tool_result",
                "tool_use_id": call["id"],
                "content": content,
                "is_error": is_error,
            }
            self.say("user", message={"role": "user", "content": [block]})

    def _deferred(self, call: Body) -> NoReturn:
        self._result(
            result="",
            stop_reason="tool_deferred",
            terminal_reason="tool_deferred",
            deferred_tool_use=call,
        )

    def _result(self, *, code: int = 0, **what: Any) -> NoReturn:
        cost = 0.001 * sum(entry["type"] == "assistant" for entry in self.entries)
        usage = {"input_tokens": 100, "output_tokens": 20}
        told = {
            "subtype": "success",
            "is_error": False,
            "terminal_reason": "completed",
            "total_cost_usd": cost,
            "usage": usage,
        }
        if FAULT == "tells of several turns":
            self.say(
                "result", **told | {"is_error": True, "result": "an agent in the background failed"}
            )
        self.say("result", **told | what)
        if FAULT == "tells of several turns" and "deferred_tool_use" in what:
            self.say("result", **told | {"result": "something woke it"})
        if FAULT == "stays":
            time.sleep(60)
        raise SystemExit(code)

    def terminate(self, *_: object) -> NoReturn:
        """Stop in good order."""
        if self.tool:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.tool.pid, signal.SIGKILL)
        if FAULT == "ignores the signal":
            time.sleep(60)
        os._exit(TERMINATED)


def leave(code: int, sentence: str) -> NoReturn:
    """Complain and leave."""
    print(sentence, file=sys.stderr)
    raise SystemExit(code)


def main() -> None:
    """Be Claude Code."""
    if "--version" in sys.argv:
        print(f"{VERSION} (Claude Code)")
        return
    with open(os.environ["FAKE_CLAUDE"] + ".argv", "a", encoding="utf-8") as noted:
        noted.write(json.dumps([os.getcwd(), *sys.argv[1:]]) + "\n")
    fake = Fake(sys.argv[1:])
    signal.signal(signal.SIGTERM, fake.terminate)
    fake.open()
    fake.run()


if __name__ == "__main__":
    main()
