"""The GitHub action: a pause is a comment, a comment by somebody with the right goes on, once."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import yaml

from tests.e2e.shell import Shell

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "action" / "comments.py"
KEY = "k" * 64
Json = dict[str, Any]


class GitHub:
    """A stand-in of GitHub's API: one issue, its comments, and who may write."""

    def __init__(self) -> None:
        self.comments: list[Json] = []
        self.permissions = {"anna": "write", "ben": "read"}
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                length = int(self.headers.get("content-length", 0))
                body = json.loads(self.rfile.read(length)) if length else None
                assert self.headers["authorization"] == "Bearer ghs_token"
                status, document = outer.take(self.command, self.path, body)
                content = json.dumps(document).encode()
                self.send_response(status)
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = answer  # noqa: N815 -- the names that the server calls

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 -- the name that it overrides
                del format, args

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self._thread = Thread(
            target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self._thread.join()

    def take(self, method: str, path: str, body: Json | None) -> tuple[int, Any]:
        if method == "POST" and path == "/repos/o/r/issues/5/comments" and body:
            return 201, self.write(body["body"], login="github-actions[bot]", kind="Bot")
        if path.startswith("/repos/o/r/issues/5/comments?"):
            page = int(path.rpartition("=")[2])
            return 200, self.comments[(page - 1) * 100 : page * 100]
        if found := re.fullmatch(r"/repos/o/r/collaborators/(\w+)/permission", path):
            if found[1] in self.permissions:
                return 200, {"permission": self.permissions[found[1]]}
            return 404, {"message": "Not Found"}
        raise AssertionError((method, path))

    def write(self, text: str, *, login: str, kind: str = "User") -> Json:
        assert len(text) <= 65_536
        number = len(self.comments) + 1
        comment = {
            "id": number,
            "body": text,
            "user": {"login": login, "type": kind},
            "html_url": f"https://github.example/o/r/issues/5#{number}",
        }
        self.comments.append(comment)
        return comment


class Workflow:
    """Runs the action's steps, each run on a machine of its own: only the artifact travels."""

    def __init__(self, shell: Shell, github: GitHub) -> None:
        self.shell = shell
        self.github = github
        self.runs = 0
        self.artifacts: dict[str, bytes] = {}

    def start(self, *words: str) -> Json:
        self._new_machine()
        return self._step("start", ADJOURN_RUN="\n".join(words))

    def comment(self, text: str, *, by: str, kind: str = "User") -> Json:
        """Write a comment, and run what it starts."""
        event = {"action": "created", "comment": self.github.write(text, login=by, kind=kind)}
        (self.shell.place / "event.json").write_text(json.dumps(event))
        return self.run_event()

    def run_event(self) -> Json:
        self._new_machine()
        found = self._step("find")
        if "run_id" not in found:
            return found
        packed = self.artifacts[f"adjourn-{found['task']} {found['run_id']}"]
        (self.shell.place / "adjourn.tar").write_bytes(packed)
        return self._step("reply")

    def _new_machine(self) -> None:
        self.runs += 1
        self.shell.run("rm", "-rf", ".adjourn", "adjourn.tar")
        state = self.shell.place.with_name(f"{self.shell.place.name}-state-{self.runs}")
        self.shell.environment["XDG_STATE_HOME"] = str(state)

    def _step(self, name: str, **more: str) -> Json:
        outputs = self.shell.place / "outputs"
        outputs.write_text("")
        run_id = str(1000 + self.runs)
        done = subprocess.run(
            [sys.executable, str(SCRIPT), name],
            cwd=self.shell.place,
            env={
                **self.shell.environment,
                "GITHUB_API_URL": self.github.url,
                "GITHUB_REPOSITORY": "o/r",
                "GITHUB_TOKEN": "ghs_token",
                "GITHUB_RUN_ID": run_id,
                "GITHUB_SHA": "a" * 40,
                "GITHUB_OUTPUT": str(outputs),
                "GITHUB_STEP_SUMMARY": str(self.shell.place / "summary"),
                "GITHUB_EVENT_PATH": str(self.shell.place / "event.json"),
                "ADJOURN_ISSUE": "5",
                "ADJOURN_STORE_KEY": KEY,
                **more,
            },
            check=False,
            timeout=120,
            capture_output=True,
        )
        assert done.returncode == 0, done.stderr.decode()
        found = dict(line.split("=", 1) for line in outputs.read_text().splitlines())
        if found.get("exit_code") == "10":
            packed = (self.shell.place / "adjourn.tar").read_bytes()
            self.artifacts[f"adjourn-{found['task']} {run_id}"] = packed
        return found


@pytest.fixture
def github() -> Iterator[GitHub]:
    """Return a stand-in of GitHub."""
    server = GitHub()
    yield server
    server.close()


def test_a_comment_by_somebody_with_the_right_goes_on_once(
    request: pytest.FixtureRequest, shell: Shell, github: GitHub
) -> None:
    if request.config.getoption("--on") == "postgres":
        pytest.skip("the store travels as an artifact: it is a directory")
    workflow = Workflow(shell, github)
    hostile = "```\n@everyone [x](http://evil.example) <!-- adjourn task=x -->"
    work = 'echo ran >> effects; echo "$GITHUB_TOKEN" >> effects'
    paused = workflow.start(
        "--pause-on-approval", "--", "sh", "-c", work, hostile.replace("\n", " ")
    )
    assert paused["exit_code"] == "10"
    pause = github.comments[-1]["body"]
    (command,) = re.findall(r"^    (/adjourn approve \S+ [0-9a-f]{8})$", pause, re.MULTILINE)
    outside = re.sub(r"(?s)(`{4,})text\n.*?\n\1", "", pause)
    assert "evil" not in outside  # all of it is code, whatever backticks it has

    # Nobody else, no other bytes, no other words, and no comment that only looks like ours
    assert "exit_code" not in workflow.comment(command, by="ben")
    assert "exit_code" not in workflow.comment(command, by="stranger")
    assert "exit_code" not in workflow.comment(command, by="anna", kind="Bot")
    assert "exit_code" not in workflow.comment("/adjourn approve $(id)", by="anna")
    assert "exit_code" not in workflow.comment(f"please\n{command}", by="anna")
    fake = pause.replace("run=1001", "run=9999")
    github.write(fake, login="stranger")
    assert not (shell.place / "effects").exists()
    told = [each["body"] for each in github.comments if "Nothing was decided" in each["body"]]
    assert len(told) == 4

    wrong = f"{command[:-8]}{'0' * 8}"
    again = workflow.comment(wrong, by="anna")
    assert again["exit_code"] == "10"
    assert "this has changed" in github.comments[-2]["body"]
    assert not (shell.place / "effects").exists()

    done = workflow.comment(command, by="anna")
    assert done["exit_code"] == "0", github.comments[-2:]
    assert (shell.place / "effects").read_text() == "ran\n\n"  # and without GitHub's token
    assert "Decided by @anna: `approve`" in github.comments[-1]["body"]
    trail = shell.adjourn("audit", "export", env={"ADJOURN_STORE_KEY": KEY}).out
    assert "GitHub user anna, https://github.example/o/r/issues/5#" in trail

    # The same comment again, from the same artifact: it was taken
    assert "exit_code" not in workflow.run_event()
    assert "somebody has decided about this pause already" in github.comments[-1]["body"]
    assert (shell.place / "effects").read_text() == "ran\n\n"


def test_the_action_names_files_that_are_there_and_no_text_of_others_in_a_script() -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    for step in action["runs"]["steps"]:
        assert "${{" not in step.get("run", ""), "text of others would become part of a script"
        assert ("run" in step) != ("uses" in step)
        if "run" in step:
            assert step["shell"] == "bash"
            assert "comments.py" in step["run"] or "pip install" in step["run"]
    example = yaml.safe_load((ROOT / "examples" / "ci" / "github-comments.yml").read_text())
    assert "concurrency" in example
    assert os.access(SCRIPT, os.R_OK)
