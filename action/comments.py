"""The script of the GitHub action: a pause is a comment, and a comment decides.

start   run the command; if it pauses, write the manifest into a comment and pack the store
find    read a comment `/adjourn approve ASK DIGEST8`, check who wrote it, find the run that paused
reply   take the store of that run, decide, and go on

It needs nothing but the standard library and `adjourn` on PATH. Text of a comment never reaches a
shell: it is matched, and passed on as single words.
"""

import itertools
import json
import os
import re
import subprocess
import sys
import tarfile
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

PACKED = "adjourn.tar"
STORE = ".adjourn"
PAUSED = 10
LONGEST = 60_000  # characters of a comment; GitHub takes 65,536
BOT = "github-actions[bot]"
MAY_WRITE = frozenset({"admin", "maintain", "write"})
_ASK = r"[a-z0-9]{8,64}"
_COMMAND = re.compile(
    rf"/adjourn[ \t]+(?:approve[ \t]+(?P<approved>{_ASK})[ \t]+(?P<digest>[0-9a-f]{{8,64}})"
    rf"|reject[ \t]+(?P<rejected>{_ASK})(?:[ \t]+(?P<reason>[^\n]*))?"
    rf"|answer[ \t]+(?P<answered>{_ASK})[ \t]+(?P<answer>[^\n]+))[ \t]*"
)
_MARK = re.compile(
    r"<!-- adjourn task=([a-z0-9]+) run=([0-9]+) sha=([0-9a-f]{40,64}) asks=([a-z0-9,]*) -->"
)
Json = dict[str, Any]


class Refused(Exception):
    """A comment decides nothing; the text says why."""


# --- GitHub ---------------------------------------------------------------------------------------


def call(method: str, path: str, body: Json | None = None) -> Any:
    """Call GitHub's API in this repository, and return the document that it answers."""
    api = os.environ.get("GITHUB_API_URL", "https://api.github.com")
    url = f"{api}/repos/{os.environ['GITHUB_REPOSITORY']}{path}"
    request = urllib.request.Request(  # noqa: S310 -- GitHub's own address
        url,
        None if body is None else json.dumps(body).encode(),
        {
            "Authorization": f"Bearer {os.environ['GITHUB_TOKEN']}",
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": "2022-11-28",
            "Content-Type": "application/json",
        },
        method=method,
    )
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 -- GitHub's own address
        return json.loads(answer.read() or b"null")


def write_comment(text: str) -> None:
    """Write a comment on the issue, and into the summary of the run."""
    with open(os.environ["GITHUB_STEP_SUMMARY"], "a", encoding="utf-8") as file:
        file.write(f"{text}\n")
    if issue := os.environ.get("ADJOURN_ISSUE"):
        call("POST", f"/issues/{int(issue)}/comments", {"body": text})


def write_outputs(**values: object) -> None:
    """Give later steps values. Each is ours, or of one line that was matched."""
    with open(os.environ["GITHUB_OUTPUT"], "a", encoding="utf-8") as file:
        file.writelines(f"{name}={value}\n" for name, value in values.items())


def read_event() -> Json:
    """Return what started this workflow."""
    with open(os.environ["GITHUB_EVENT_PATH"], encoding="utf-8") as file:
        event: Json = json.load(file)
    return event


def may_decide(login: str) -> bool:
    """Return whether somebody may decide: one of the approvers, or whoever may write."""
    if listed := os.environ.get("ADJOURN_APPROVERS", "").strip():
        return login.lower() in {each.strip().lower() for each in listed.split(",")}
    try:
        found = call("GET", f"/collaborators/{urllib.parse.quote(login)}/permission")
    except urllib.error.HTTPError as error:
        with error:
            if error.code == 404:  # noqa: PLR2004 -- not a collaborator
                return False
            raise
    return bool({found.get("permission"), found.get("role_name")} & MAY_WRITE)


def find_pause(ask: str) -> tuple[str, str, str]:
    """Return the task, the run and the commit of the newest pause in which an ask was open."""
    marks = [_MARK.match(comment["body"]) for comment in own_comments()]
    found = [mark for mark in marks if mark and ask in mark[4].split(",")]
    if not found:
        raise Refused(f"no pause in this conversation asks `{ask}`")
    return found[-1][1], found[-1][2], found[-1][3]


def own_comments() -> list[Json]:
    """Return what the workflow's own bot wrote, oldest first.

    Nobody else's counts: anybody could write one that looks alike.
    """
    found: list[Json] = []
    for page in itertools.count(1):
        path = f"/issues/{int(os.environ['ADJOURN_ISSUE'])}/comments?per_page=100&page={page}"
        comments = call("GET", path)
        found += [
            each
            for each in comments
            if each["user"]["login"] == BOT and each["user"]["type"] == "Bot"
        ]
        if len(comments) < 100:  # noqa: PLR2004 -- it was the last page
            break
    return found


def claim_pause(task: str, run: str, login: str) -> None:
    """Take a pause for this comment alone, or raise Refused.

    A store that travels as an artifact can be taken twice, and what was approved in it would run
    twice. So whoever goes on writes a comment first, and the first of those comments wins.
    """
    mark = f"<!-- adjourn taken task={task} run={run} -->"
    made = call(
        "POST",
        f"/issues/{int(os.environ['ADJOURN_ISSUE'])}/comments",
        {"body": f"{mark}\n\n@{login} decides."},
    )
    first = next(each["id"] for each in own_comments() if each["body"].startswith(mark))
    if first != made["id"]:
        raise Refused("somebody has decided about this pause already")


# --- adjourn --------------------------------------------------------------------------------------


def adjourn(*words: str) -> tuple[int, Json]:
    """Run adjourn, and return its exit code and the document that it prints."""
    done = subprocess.run(
        ["adjourn", *words], stdout=subprocess.PIPE, check=False, env=_environment()
    )
    try:
        document: Json = json.loads(done.stdout)
    except ValueError:
        document = {}
    return done.returncode, document


def _environment() -> dict[str, str]:
    """Return the environment without GitHub's token: what runs under adjourn has no use for it."""
    return {name: value for name, value in os.environ.items() if name != "GITHUB_TOKEN"}


def tell(code: int, document: Json, *, head: str = "") -> int:
    """Write what came of a run into a comment; keep the store if it waits. Return the exit code."""
    task = str(document.get("task_id", ""))
    if code == PAUSED:
        write_comment(_pause_comment(document, head=head))
        with tarfile.open(PACKED, "w") as archive:
            archive.add(STORE, filter=_without_locks)
    else:
        outcome = "completed" if code == 0 else f"failed (exit code {code})"
        why = document.get("error", {}).get("message") or document.get("agent_message") or ""
        write_comment("\n\n".join(filter(None, (head, f"Task `{task}` {outcome}.", fenced(why)))))
    write_outputs(exit_code=code, task=task)
    return 0 if code in {0, PAUSED} else code


def _without_locks(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    is_socket = not (entry.isreg() or entry.isdir() or entry.issym())
    return None if is_socket or entry.name.endswith(".lock") else entry


def _pause_comment(document: Json, *, head: str) -> str:
    """Return the comment of a pause: what is asked, all of it, and what to write to decide."""
    task = document["task_id"]
    asks = [ask for ask in document.get("asks", []) if ask["state"] == "pending"]
    done = subprocess.run(
        ["adjourn", "show", task, "--full", "--store", STORE],
        stdout=subprocess.PIPE,
        check=True,
        env=_environment(),
    )
    shown = fenced(done.stdout.decode("utf-8", "replace"))
    is_whole = len(shown) <= LONGEST
    names = ",".join(ask["id"] for ask in asks)
    sha = os.environ["GITHUB_SHA"]
    rows = [
        f"<!-- adjourn task={task} run={os.environ['GITHUB_RUN_ID']} sha={sha} asks={names} -->",
        *filter(None, (head,)),
        "### adjourn waits for a person",
        shown if is_whole else "It is too long for a comment: decide where you can see all of it.",
        "To decide, write one of these as a comment:",
    ]
    for ask in asks:
        ways: list[str] = []
        terms = ask.get("terms") or {}
        is_plain = not (terms.get("override") or terms.get("signed"))
        if ask["kind"] == "approval" and is_whole and is_plain:
            ways.append(f"/adjourn approve {ask['id']} {ask['digest'][:8]}")
        if ask["kind"] == "approval":
            ways.append(f"/adjourn reject {ask['id']} why")
        if ask["kind"] == "question":
            ways.append(f"/adjourn answer {ask['id']} your answer")
        rows.append("\n".join(f"    {way}" for way in ways) or f"`adjourn show {ask['id']}`")
    return "\n\n".join(rows)


def fenced(text: str) -> str:
    """Return a text as code, in which GitHub makes no links, mentions or formatting of it."""
    if not text:
        return ""
    longest = max((len(each) for each in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text.rstrip()}\n{fence}"


# --- what the action calls ------------------------------------------------------------------------


def start() -> int:
    """Run the command, which is one word a line."""
    words = [word for word in os.environ["ADJOURN_RUN"].splitlines() if word.strip()]
    if not words:
        sys.stderr.write("adjourn: the input `run` is empty\n")
        return 2
    return tell(*adjourn("run", "--output", "json", "--store", STORE, *words))


def find() -> int:
    """Say which run paused that a comment decides about; a stranger's comment finds none."""
    event = read_event()
    comment = event["comment"]
    lines = str(comment["body"]).replace("\r\n", "\n").split("\n")
    said = _COMMAND.fullmatch(lines[0])
    if event.get("action") != "created" or not lines[0].startswith("/adjourn"):
        return 0
    login = comment["user"]["login"]
    try:
        if said is None:
            raise Refused(
                "write `/adjourn approve ASK DIGEST`, `/adjourn reject ASK REASON` or"
                " `/adjourn answer ASK TEXT`"
            )
        if comment["user"]["type"] != "User" or not may_decide(login):
            raise Refused("you may not decide here")
        ask = said["approved"] or said["rejected"] or said["answered"]
        task, run, sha = find_pause(ask)
    except Refused as refusal:
        write_comment(f"@{login}: {refusal}. Nothing was decided.")
        return 0
    write_outputs(task=task, run_id=run, sha=sha)
    return 0


def reply() -> int:
    """Decide what the comment says, with the login in the trail, and go on with the task."""
    comment = read_event()["comment"]
    said = _COMMAND.fullmatch(str(comment["body"]).replace("\r\n", "\n").split("\n")[0])
    login = comment["user"]["login"]
    if said is None or not may_decide(login):
        return 1  # `find` refused it
    ask = said["approved"] or said["rejected"] or said["answered"]
    try:
        task, run, _ = find_pause(ask)
        claim_pause(task, run, login)
    except Refused as refusal:
        write_comment(f"@{login}: {refusal}. Nothing was decided.")
        return 0
    with tarfile.open(PACKED) as archive:
        archive.extractall(filter="data")
    who = f"GitHub user {login}, {comment['html_url']}"
    _, document = adjourn("show", ask, "--output", "json", "--store", STORE)
    if said["approved"]:
        digest = str(document.get("digest"))
        if not digest.startswith(said["digest"]):
            write_comment(f"@{login}: this has changed since it was shown. Nothing was decided.")
            return tell(PAUSED, adjourn("show", task, "--output", "json", "--store", STORE)[1])
        words = ["approve", ask, "--digest", digest, "--comment", who]
    elif said["rejected"]:
        words = ["reject", ask, "--reason", f"{said['reason'] or 'rejected'} ({who})"]
    else:
        words = ["answer", ask, "--", said["answer"]]
    verb, *rest = words
    code, document = adjourn(verb, "--output", "json", "--store", STORE, *rest)
    if code:
        why = document.get("error", {}).get("message", "")
        write_comment(f"@{login}: it was not recorded.\n\n{fenced(why)}")
        return tell(PAUSED, adjourn("show", task, "--output", "json", "--store", STORE)[1])
    head = f"Decided by @{login}: `{verb}` of `{ask}`."
    return tell(*adjourn("resume", task, "--output", "json", "--store", STORE), head=head)


if __name__ == "__main__":
    sys.exit({"start": start, "find": find, "reply": reply}[sys.argv[1]]())
