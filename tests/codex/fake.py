#!/usr/bin/env python3
"""A codex that is none: speaks the app-server's protocol as the real one does, and plays what a file tells it to.

`CODEX_HOME/fake.json` holds `{"version": …, "turns": [[{"say": …} | {"run": …, "id": …} | {"ask": …} | {"raw": …} | …], …]}`.
Each model answer is one list; the next one begins when all its calls have an output. What the model is told is appended to
`CODEX_HOME/told.jsonl`. Every call goes to the hook first, as the real one's do.
"""

import json
import os
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Any

Json = dict[str, Any]
HOME = Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex")


class Fake:
    def __init__(self) -> None:
        self.play = json.loads((HOME / "fake.json").read_text())
        self.hook = _hook(sys.argv)
        self.thread = ""
        self.rollout = HOME

    def serve(self) -> None:
        for line in sys.stdin:
            message = json.loads(line)
            if "method" in message and "id" in message:
                self.answer(message)

    def answer(self, message: Json) -> None:
        name = message["method"].replace("/", "_").replace("hooks_list", "list_hooks")
        time.sleep(self.play.get("slow", {}).get(message["method"], 0))
        handle = getattr(self, f"do_{name}", None)
        if handle is None or message["method"] in self.play.get("refuses", []):
            why = self.play.get("refusal", f"unknown {message['method']}")
            say({"id": message["id"], "error": {"code": -32601, "message": why}})
            return
        say({"id": message["id"], "result": handle(message.get("params") or {})})
        if message["method"] == "turn/start":
            self.turn()

    def do_initialize(self, _: Json) -> Json:
        return {"userAgent": f"adjourn/{self.play.get('version', '0.166.0')} (fake)"}

    def do_config_read(self, _: Json) -> Json:
        return {"config": {}}

    def do_account_read(self, _: Json) -> Json:
        return {"account": None}

    def do_list_hooks(self, _: Json) -> Json:
        key = "/<session-flags>/config.toml:pre_tool_use:0:0"
        trust = self.play.get("trust", "trusted")
        return {
            "data": [
                {
                    "hooks": [
                        {"key": key, "command": self.hook, "enabled": True, "trustStatus": trust}
                    ]
                }
            ]
        }

    def do_thread_start(self, _: Json) -> Json:
        self.thread = str(uuid.uuid4())
        place = HOME / "sessions" / "2026" / "01" / "01"
        place.mkdir(parents=True, exist_ok=True)
        self.rollout = place / f"rollout-2026-01-01T00-00-00-{self.thread}.jsonl"
        return self._opened()

    def do_thread_resume(self, params: Json) -> Json:
        found = list(HOME.glob(f"sessions/*/*/*/*{params['threadId']}.jsonl"))
        self.thread, self.rollout = params["threadId"], found[0]
        if self.play.get("opens"):
            self.thread = self.play["opens"]
        return self._opened()

    def _opened(self) -> Json:
        return {
            "thread": {"id": self.thread, "path": str(self.rollout)},
            "sandbox": {"type": "workspaceWrite"},
        }

    def do_thread_inject_items(self, params: Json) -> Json:
        for item in params["items"]:
            self.write("response_item", item)
        return {}

    def do_turn_start(self, params: Json) -> Json:
        for part in params["input"]:
            content = [{"type": "input_text", "text": part["text"]}]
            self.write("response_item", {"type": "message", "role": "user", "content": content})
        return {"turn": {"id": "turn"}}

    def do_command_exec(self, params: Json) -> Json:
        done = subprocess.run(
            params["command"], cwd=params["cwd"], capture_output=True, text=True, check=False
        )
        return {"exitCode": done.returncode, "stdout": done.stdout, "stderr": done.stderr}

    # --- the model --------------------------------------------------------------------------------

    def turn(self) -> None:
        said = self.history()
        while (number := sum(line["type"] == "token_usage_record" for line in self.lines())) < len(
            self.play["turns"]
        ):
            with (HOME / "told.jsonl").open("a") as file:
                file.write(json.dumps(said) + "\n")
            steps = self.play["turns"][number]
            for step in steps:
                self.begin(step)
            usage = {"input_tokens": 100, "output_tokens": 10}
            self.write("token_usage_record", {"usage": usage})
            for step in steps:
                self.act(step)
            said = self.history()
        self.notify("turn/completed", turn={"id": "turn", "status": "completed", "error": None})

    def begin(self, step: Json) -> None:
        if "run" in step:
            arguments = json.dumps({"cmd": step["run"]})
            call = {
                "type": "function_call",
                "name": "exec_command",
                "call_id": step["id"],
                "arguments": arguments,
            }
            self.write("response_item", call)
        if "write" in step:
            content = [{"type": "output_text", "text": step["write"]}]
            self.write(
                "response_item", {"type": "message", "role": "assistant", "content": content}
            )
        if "ask" in step:
            call = {
                "type": "function_call",
                "name": "request_user_input",
                "call_id": step["id"],
                "arguments": "{}",
            }
            self.write("response_item", call)

    def act(self, step: Json) -> None:
        if "wait" in step:
            time.sleep(step["wait"])
        if "raw" in step:
            print(step["raw"], flush=True)
        if "die" in step:
            sys.exit(step["die"])
        self.trouble(step)
        if "request" in step:
            self.request(step["request"], {})
        if "say" in step:
            self.item(
                "agentMessage",
                step.get("id", "msg"),
                text=step["say"],
                questions=step.get("questions"),
            )
        if "run" in step:
            self.run(step)
        if "ask" in step:
            self.question(step)

    def trouble(self, step: Json) -> None:
        for _ in range(step.get("trouble", 0)):
            self.notify(
                "error", error={"message": "Reconnecting... waiting for network"}, willRetry=True
            )
        if "fail" in step:
            error = {"message": "too long, or too much", "codexErrorInfo": step["fail"]}
            self.notify("turn/completed", turn={"id": "turn", "status": "failed", "error": error})
            time.sleep(60)

    def run(self, step: Json) -> None:
        if not step.get("unasked") and not self.passes(step):
            self.output(step["id"], "Command blocked by PreToolUse hook")
            return
        if (
            step.get("asks")
            and self.request("item/commandExecution/requestApproval", step["asks"])["decision"]
            != "accept"
        ):
            self.item("commandExecution", step["id"], command=step["run"], status="declined")
            self.output(step["id"], "rejected by user")
            return
        done = subprocess.run(
            ["bash", "-lc", step["run"]], capture_output=True, text=True, check=False
        )
        line = f"/bin/bash -lc '{step['run']}'"
        self.item(
            "commandExecution",
            step["id"],
            command=line,
            exitCode=done.returncode,
            aggregatedOutput=done.stdout,
        )
        self.output(
            step["id"], f"Process exited with code {done.returncode}\nOutput:\n{done.stdout}"
        )

    def passes(self, step: Json) -> bool:
        about = {
            "session_id": step.get("thread", self.thread),
            "cwd": os.getcwd(),
            "tool_name": step.get("tool", "Bash"),
        }
        given = {"tool_input": {"command": step["run"]}, "tool_use_id": step["id"]}
        words = ["sh", "-c", self.hook]
        done = subprocess.run(
            words, input=json.dumps(about | given), capture_output=True, text=True, check=False
        )
        return done.returncode == 0  # silence is a yes, as it is to the real one

    def question(self, step: Json) -> None:
        asked = {"itemId": step["id"], "questions": step["ask"], "isBlocking": False}
        self.output(step["id"], json.dumps(self.request("item/tool/requestUserInput", asked)))

    # --- what it writes and says ------------------------------------------------------------------

    def request(self, method: str, params: Json) -> Json:
        say({"method": method, "id": 7, "params": {"threadId": self.thread, **params}})
        for line in sys.stdin:
            message = json.loads(line)
            if message.get("id") == 7:
                answer: Json = message.get("result") or {"decision": "refused"}
                return answer
        sys.exit(0)

    def item(self, kind: str, name: str, **fields: object) -> None:
        self.notify(
            "item/completed", item={"id": name, "type": kind, "status": "completed"} | fields
        )

    def notify(self, method: str, **fields: object) -> None:
        say({"method": method, "params": {"threadId": self.thread, **fields}})

    def output(self, call: str, text: str) -> None:
        self.write(
            "response_item", {"type": "function_call_output", "call_id": call, "output": text}
        )

    def write(self, kind: str, payload: Json) -> None:
        with self.rollout.open("a") as file:
            file.write(json.dumps({"type": kind, "payload": payload}) + "\n")

    def lines(self) -> list[Json]:
        return (
            [json.loads(line) for line in self.rollout.read_text().splitlines()]
            if self.rollout.is_file()
            else []
        )

    def history(self) -> list[Json]:
        return [line["payload"] for line in self.lines() if line["type"] == "response_item"]


def say(message: Json) -> None:
    print(json.dumps(message), flush=True)


def _hook(words: list[str]) -> str:
    """Return the command of the hook in our arguments: a TOML text, which JSON reads as well."""
    setting = next(word for word in words if word.startswith("hooks="))
    return str(json.loads(setting.partition(",command=")[2].partition(",timeout=")[0]))


if __name__ == "__main__":
    if sys.argv[1:] in (["--version"], ["app-server", "--help"]):
        play = json.loads((HOME / "fake.json").read_text()) if (HOME / "fake.json").exists() else {}
        sys.exit(print(f"codex-cli {play.get('version', '0.166.0')}"))
    if sys.argv[1:2] != ["app-server"]:
        sys.exit(2)
    Fake().serve()
