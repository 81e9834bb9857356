"""An agent of the official SDK that plays a script, with the quirks that real agents were seen to have.

The file that ACP_PLAY names has the answers of its model: `turns`, or `jobs` for one that does what it is told of them;
and `quirks`. Sessions are files in `~/.scripted`.
"""

import asyncio
import json
import os
import shlex
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any, cast

import acp
from acp import schema
from acp.helpers import (
    start_tool_call,
    text_block,
    tool_content,
    tool_diff_content,
    update_agent_message_text,
    update_tool_call,
)

Body = dict[str, Any]
PLAY: Body = json.loads(Path(os.environ["ACP_PLAY"]).read_text())
QUIRKS = set(PLAY.get("quirks", []))
HOME = Path(os.environ["HOME"]) / ".scripted"
OPTIONS = [("yes", "Allow once", "allow_once"), ("ever", "Always allow", "allow_always")]
NO = ("no", "Reject", "reject_once")


class Session:
    """A session and its file."""

    def __init__(self, name: str) -> None:
        self.name, self.file = name, HOME / f"{name}.json"
        self.state: Body = {"answers": 0, "prompts": [], "told": [], "fates": {}}
        self.mode = PLAY.get("mode", "default")
        self.cwd = ""
        self.servers: list[Any] = []

    def save(self) -> None:
        """Write it to disk, as a whole."""
        HOME.mkdir(exist_ok=True)
        draft = self.file.with_suffix(f".{os.getpid()}")
        draft.write_text(json.dumps(self.state))
        draft.replace(self.file)

    def answer(self) -> list[Body]:
        """Return what the model answers next."""
        if "jobs" in PLAY:
            left = [job for job in PLAY["jobs"] if job not in self.state["fates"]]
            size = PLAY.get("batch", 1)
            number = self.state["answers"]
            return [
                {"run": job, "id": f"job_{number}_{at}"} for at, job in enumerate(left[:size])
            ] or [{"say": "All done."}]
        turns: list[list[Body]] = PLAY["turns"]
        return turns[min(self.state["answers"], len(turns) - 1)]

    def hear(self, text: str) -> None:
        """Let a model of jobs believe what it is told of them."""
        for part in text.split("\n- ")[1:]:
            for job in PLAY.get("jobs", []):
                if json.dumps(job)[1:-1] not in part:
                    continue
                if "Approved by" in part:
                    self.state["fates"].pop(job, None)
                elif (
                    "Rejected" in part
                    or "It succeeded" in part
                    or "It ran" in part
                    or "nobody saw it end" in part
                ):
                    self.state["fates"][job] = part.splitlines()[-1]


class Scripted:
    """The agent."""

    conn: Any = None

    def __init__(self) -> None:
        self.sessions: dict[str, Session] = {}
        self.canceled = asyncio.Event()

    def on_connect(self, conn: Any) -> None:
        self.conn = conn

    # --- sessions ---------------------------------------------------------------------------------

    async def initialize(self, protocol_version: int, **_: Any) -> schema.InitializeResponse:
        del protocol_version
        if "noise" in QUIRKS:
            os.write(1, b"Welcome to the scripted agent!\n")
        loads = "load" in QUIRKS
        sessions = schema.SessionCapabilities(
            resume=None if loads else schema.SessionResumeCapabilities()
        )
        if "no resume" in QUIRKS:
            loads, sessions = False, schema.SessionCapabilities()
        return schema.InitializeResponse(
            protocol_version=PLAY.get("protocol", 1),
            agent_capabilities=schema.AgentCapabilities(
                load_session=loads, session_capabilities=sessions
            ),
            agent_info=schema.Implementation(name="scripted", version=PLAY.get("version", "1.0")),
            auth_methods=[],
        )

    async def authenticate(self, method_id: str, **_: Any) -> None:
        if method_id != "key":
            raise acp.RequestError(-32000, "no such method")
        (HOME / "logged-in").write_text("")

    def _modes(self, session: Session) -> Any:
        if "modes" not in PLAY:
            return None
        modes = [schema.SessionMode(id=name, name=name) for name in PLAY["modes"]]
        return schema.SessionModeState(current_mode_id=session.mode, available_modes=modes)

    async def new_session(
        self, cwd: str, mcp_servers: Any = None, **_: Any
    ) -> schema.NewSessionResponse:
        if "login" in QUIRKS and not (HOME / "logged-in").exists():
            raise acp.RequestError(-32000, "Authentication required")
        name = str(uuid.uuid4())
        session = self.sessions[name] = Session(name)
        session.cwd, session.servers = cwd, mcp_servers or []
        return schema.NewSessionResponse(session_id=name, modes=self._modes(session))

    def _reopen(self, name: str, cwd: str) -> Session:
        session = self.sessions[name] = Session(name)
        session.cwd = cwd
        if not session.file.exists() or "forgets" in QUIRKS:
            raise acp.RequestError(-32002, f"no session {name}")
        session.state = json.loads(session.file.read_text())
        return session

    async def resume_session(
        self, session_id: str, cwd: str, **_: Any
    ) -> schema.ResumeSessionResponse:
        return schema.ResumeSessionResponse(modes=self._modes(self._reopen(session_id, cwd)))

    async def load_session(self, session_id: str, cwd: str, **_: Any) -> schema.LoadSessionResponse:
        session = self._reopen(session_id, cwd)
        await self._replay(session)
        if "late replay" in QUIRKS:
            asyncio.get_running_loop().call_later(
                0.05, lambda: asyncio.ensure_future(self._replay(session))
            )
        return schema.LoadSessionResponse(modes=self._modes(session))

    async def _replay(self, session: Session) -> None:
        await self._update(session, update_agent_message_text("OLD WORDS"))
        old = start_tool_call(
            "old",
            "touch old",
            kind="execute",
            status="completed",
            raw_input={"command": "touch old"},
        )
        await self._update(session, old)

    async def set_session_mode(
        self, session_id: str, mode_id: str, **_: Any
    ) -> schema.SetSessionModeResponse:
        if mode_id not in PLAY.get("modes", [mode_id]):
            raise acp.RequestError(-32602, f"no mode {mode_id}")
        self.sessions[session_id].mode = mode_id
        return schema.SetSessionModeResponse()

    async def cancel(self, session_id: str, **_: Any) -> None:
        del session_id
        self.canceled.set()

    # --- turns ------------------------------------------------------------------------------------

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> schema.PromptResponse:
        session = self.sessions[session_id]
        text = "\n".join(block.text for block in prompt)
        session.state["prompts"].append(text)
        session.hear(text)
        session.save()
        if "fails" in QUIRKS:
            raise acp.RequestError(-32603, "the model's server is away")
        if "says nothing" in QUIRKS:
            return schema.PromptResponse(stop_reason="end_turn")
        if "unknown" in QUIRKS:
            await self._unknown(session)
        if "probe" in PLAY:
            return await self._obey(session, text)
        while True:
            steps = session.answer()
            session.state["answers"] += 1
            session.save()
            if "switches" in QUIRKS:
                await self._update(
                    session,
                    schema.CurrentModeUpdate(
                        session_update="current_mode_update", current_mode_id="yolo"
                    ),
                )
            reason = await self._carry_out(session, steps)
            if reason:
                usage = schema.Usage(total_tokens=110, input_tokens=100, output_tokens=10)
                return schema.PromptResponse(stop_reason=cast("Any", reason), usage=usage)

    async def _unknown(self, session: Session) -> None:
        try:
            await self.conn._conn.send_request(
                "craft/drainMidTurnQueue", {"sessionId": session.name}
            )
        except acp.RequestError as error:
            session.state["told"].append(f"unknown {error.code}")
        await self.conn._conn.send_notification("craft/hello", {})

    async def _carry_out(self, session: Session, steps: list[Body]) -> str | None:
        """Do what the model wants; return why the turn ends, if it does."""
        for step in steps:
            if "sleep" in step:
                await asyncio.sleep(step["sleep"])
            if "say" in step:
                await self._update(session, update_agent_message_text(step["say"]))
            if "ask" in step:
                await self._elicit(session, step["ask"])
            if "stop" in step:
                return str(step["stop"])
        calls = [step for step in steps if "run" in step or "write" in step]
        if not calls:
            return None if any("ask" in step for step in steps) else "end_turn"
        if QUIRKS & {"at once", "confirms all"}:
            allowed = await self._ask_about_all(session, calls)
        else:
            allowed = None
        for at, step in enumerate(calls):
            yes = allowed[at] if allowed else await self._ask_about(session, step)
            if not yes:
                session.state["told"].append(f"rejected {step['id']}")
                session.state["fates"][step.get("run", "")] = "rejected"
                session.save()
                if "cancels" in QUIRKS:
                    return "cancelled"
                await self._update(session, update_tool_call(step["id"], status="failed"))
                continue
            await self._make(session, step)
        return None

    async def _obey(self, session: Session, text: str) -> schema.PromptResponse:
        """Do what a probe asks for, as its model would: the last line in quotes is what to do."""
        tools = {
            "shell tool": "command",
            "writes files": "write",
            "fetches": "fetch",
            "MCP": "mcp tool",
        }
        what = next(name for words, name in tools.items() if words in text)
        target = text.splitlines()[-1]
        server = session.servers[0]
        called = json.dumps(
            {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": target}}
        )
        commands = {
            "command": target,
            "write": f"echo ok > {target}",
            "fetch": f"{sys.executable} -c 'import urllib.request as r; r.urlopen(\"{target}\").read()'",
            "mcp tool": f"echo '{called}' | {shlex.join([server.command, *server.args])}",
        }
        step: Body = {"run": commands[what], "id": f"call_{len(session.state['prompts'])}"}
        does = PLAY["probe"].get(what, "asks")
        if does == "refuses":
            await self._update(session, update_agent_message_text("I would rather not."))
        elif does == "acts" or await self._ask_about(session, step):
            subprocess.run(commands[what], shell=True, cwd=session.cwd, check=False)  # noqa: S602, ASYNC221 -- that is its job
            await self._update(session, update_agent_message_text("Done."))
        return schema.PromptResponse(stop_reason="end_turn")

    # --- calls ------------------------------------------------------------------------------------

    def _described(self, step: Body) -> Body:
        """Return what the agent shows of a call."""
        if "write" in step:
            path = str(Path(step["write"]).absolute())
            return {
                "title": f"Write {step['write']}",
                "kind": "edit",
                "content": [tool_diff_content(path, step["text"], None)],
                "locations": [schema.ToolCallLocation(path=path)],
            }
        raw = None if "title only" in QUIRKS else {"command": step["run"], **step.get("more", {})}
        title = "List the files" if "lies" in QUIRKS else step["run"]
        return {"title": title, "kind": step.get("tool_kind", "execute"), "raw_input": raw}

    async def _ask_about(self, session: Session, step: Body) -> bool:
        shown = self._described(step)
        if "unasked" in QUIRKS or (PLAY.get("asks in") and session.mode != PLAY["asks in"]):
            await self._update(session, start_tool_call(step["id"], status="pending", **shown))
            return True
        bare = QUIRKS & {"bare", "late"}
        if "late" not in QUIRKS:
            await self._update(session, start_tool_call(step["id"], status="pending", **shown))
        else:
            loop = asyncio.get_running_loop()
            late = start_tool_call(step["id"], status="pending", **shown)
            loop.call_later(0.4, lambda: asyncio.ensure_future(self._update(session, late)))
        asked = schema.ToolCallUpdate(tool_call_id=step["id"], **({} if bare else shown))
        return await self._permitted(session, asked)

    async def _ask_about_all(self, session: Session, steps: list[Body]) -> list[bool]:
        for step in steps:
            await self._update(
                session, start_tool_call(step["id"], status="pending", **self._described(step))
            )
        if "confirms all" in QUIRKS:
            asked = schema.ToolCallUpdate(
                tool_call_id="confirmation", title="Confirm Agent Actions"
            )
            return [await self._permitted(session, asked)] * len(steps)
        asks = [
            self._permitted(
                session, schema.ToolCallUpdate(tool_call_id=step["id"], **self._described(step))
            )
            for step in steps
        ]
        return list(await asyncio.gather(*asks))

    async def _permitted(self, session: Session, asked: schema.ToolCallUpdate) -> bool:
        offered = [*(PLAY.get("options") or OPTIONS), *([] if "no no" in QUIRKS else [NO])]
        options = [
            schema.PermissionOption(option_id=id_, name=name, kind=kind)
            for id_, name, kind in offered
        ]
        reply = (await self.conn.request_permission(session.name, asked, options)).outcome
        session.state["told"].append(getattr(reply, "option_id", reply.outcome))
        session.save()
        kinds = {option.option_id: option.kind for option in options}
        return kinds.get(getattr(reply, "option_id", ""), "").startswith("allow")

    async def _make(self, session: Session, step: Body) -> None:
        await self._update(session, update_tool_call(step["id"], status="in_progress"))
        output, ok = "", True
        if "write" in step:
            Path(session.cwd, step["write"]).write_text(step["text"])  # noqa: ASYNC240 -- a small file
        else:
            shell = await asyncio.create_subprocess_shell(
                step["run"], cwd=session.cwd, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL
            )
            done = asyncio.ensure_future(shell.communicate())
            stop = asyncio.ensure_future(self.canceled.wait())
            await asyncio.wait({done, stop}, return_when=asyncio.FIRST_COMPLETED)
            if not done.done():
                shell.kill()
            output, ok = (await done)[0].decode(), shell.returncode == 0
        if "dies" in QUIRKS:
            os.kill(os.getpid(), 9)
        session.state["fates"][step.get("run", "")] = "done" if ok else "failed"
        session.save()
        content = [tool_content(text_block(output))]
        await self._update(
            session,
            update_tool_call(step["id"], status="completed" if ok else "failed", content=content),
        )

    async def _elicit(self, session: Session, form: Body) -> None:
        mode = schema.ElicitationFormSessionMode(
            session_id=session.name, requested_schema=schema.ElicitationSchema(**form["schema"])
        )
        reply = await self.conn.create_elicitation(form["message"], mode)
        session.state["told"].append([reply.action, getattr(reply, "content", None)])
        session.save()

    async def _update(self, session: Session, update: Any) -> None:
        await self.conn.session_update(session.name, update)


async def main() -> None:
    """Be an agent."""
    HOME.mkdir(exist_ok=True)
    if "detaches" in QUIRKS:
        subprocess.Popen(["sleep", "600"], start_new_session=True)  # noqa: ASYNC220 -- nobody waits for it
    await acp.run_agent(cast("Any", Scripted()), use_unstable_protocol=True)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
