"""Every document is what its page and its schema say."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from docs import generate
from tests.docs.program import adjourn, wait_for_start

pytestmark = pytest.mark.xdist_group("documents")  # one story for all of them
TYPES = {
    "string": str,
    "integer": int,
    "boolean": bool,
    "null": type(None),
    "object": dict,
    "array": list,
}


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return what each verb prints with `--output json`, in one story."""
    place = tmp_path_factory.mktemp("documents")
    told: dict[str, Any] = {}

    def tell(verb: str, *words: str) -> Any:
        printed = adjourn(place, *verb.split(), "--output", "json", *words).stdout
        told[verb] = json.loads(printed)
        return told[verb]

    script = 'adjourn ask "Go?" --key go || exit $?; adjourn ask --output json "Go?" --key go2'
    asked = tell("run", "--", "sh", "-c", script)
    tell("inbox")
    tell("snooze", asked["asks"][0]["id"], "--for", "1h")
    tell("answer", asked["asks"][0]["id"], "yes")
    again = tell("resume", asked["task_id"])
    adjourn(place, "answer", again["asks"][0]["id"], "yes")
    printed = adjourn(place, "resume", asked["task_id"]).stdout
    told["ask"] = json.loads(printed.partition("\n")[2])
    for verb in ("show", "runs", "logs", "wait"):
        tell(verb, asked["task_id"])
    tell("cancel", tell("restart", asked["task_id"])["task_id"])
    for verb in ("approve", "reject"):
        tell(verb, tell("run", "--", "sh", "-c", "exit 90")["asks"][0]["id"])
    lost = adjourn(place, "run", "--detach", "--", "sleep", "60").stdout.strip()
    tell("pause", wait_for_start(place, lost))
    tell("tasks")
    delegation = tell("delegate add", "agent:lead", lost)["delegation"]["id"]
    tell("delegate list")
    tell("users add", "anna")
    tell("users link", "anna")
    tell("users list")
    tell("users remove", "anna")
    tell("delegate revoke", delegation)
    tell("worker", "--status")
    tell("notify")
    tell("policy explain", "--", "ls")
    tell("policy check")
    rule = tell("rules add", "--", "ls")["rule"]["id"]
    tell("rules list")
    tell("rules revoke", rule)
    (place / "plan.toml").write_text('[[task]]\nid = "a"\ncommand = ["true"]\n')
    tell("plan show")
    tell("execute")
    tell("audit verify")
    tell("audit export")
    tell("doctor")
    tell("config")
    asked_at_once = adjourn(
        place, "run", "--", "sh", "-c", "adjourn clarify --output json --linger 0s 'Why?'"
    ).stdout
    told["clarify"], _ = json.JSONDecoder().raw_decode(asked_at_once)
    tell("store backup", "copy.db")
    tell("store migrate")
    tell("prune", "--older-than", "0")
    shutil.copytree(place / ".adjourn", place / "copied", symlinks=True)
    tell("store adopt", "--store", "copied", "--yes")
    for suffix in ("", "-wal", "-shm"):
        (place / ".adjourn" / f"adjourn.db{suffix}").unlink(missing_ok=True)
    shutil.copy(place / "copy.db", place / ".adjourn" / "adjourn.db")
    tell("store accept", "--yes")
    tell("store forget", "--yes")
    return told


AS_OTHERS = {"settle": "cancel", "decide": "approve", "fork": "run"}
# They need a database, a host, or go on until somebody ends them
ELSEWHERE = {"store roles", "watch", "mcp", "setup"}
ALWAYS_TEXT = {"demo", "completion", "tui"}


def test_every_verb_has_its_document() -> None:
    assert {path for path, _ in generate.commands()} == generate.DOCUMENTS.keys() | ALWAYS_TEXT


@pytest.mark.parametrize(
    "verb", [verb for verb in generate.DOCUMENTS if verb not in {*AS_OTHERS, *ELSEWHERE}]
)
def test_a_verb_prints_the_document_that_is_documented(
    verb: str, documents: dict[str, Any]
) -> None:
    described = generate.DOCUMENTS[verb]
    described = (
        generate.DOCUMENTS[same[1]]
        if (same := re.fullmatch(r"as `([\w ]+)`", described))
        else described
    )
    definitions = generate.schema()["$defs"]
    if described.startswith("Manifests"):
        assert set(documents[verb]) == {"schema_version", "tasks"}
        for doc in documents[verb]["tasks"]:
            assert fits(doc, definitions["Manifest"], definitions) == []
        return
    if described.startswith("Manifest"):
        assert fits(documents[verb], definitions["Manifest"], definitions) == []
        return
    named = set(re.findall(r"`(\w+)`", described)) - {"recorded"}
    inner = documents[verb].get("tasks")
    told = set(documents[verb]) | (set(inner[0]) if isinstance(inner, list) else set())
    assert told == named
    for doc in documents[verb].get("asks", []):
        assert fits(doc, definitions["AskDoc"], definitions) == []
    for doc in documents[verb].get("runs", []):
        assert fits(doc, definitions["RunDoc"], definitions) == []


def test_a_failure_is_the_document_that_is_documented(tmp_path: Path) -> None:
    definitions = generate.schema()["$defs"]
    failure = json.loads(adjourn(tmp_path, "show", "x", "--output", "json").stdout)
    assert fits(failure, definitions["Failure"], definitions) == []


def test_the_manifest_file_is_what_stdout_says(tmp_path: Path) -> None:
    printed = adjourn(tmp_path, "run", "--output", "json", "--", "sh", "-c", "exit 90").stdout
    assert json.loads((tmp_path / ".adjourn" / "session" / "pause.json").read_text()) == json.loads(
        printed
    )


def fits(value: Any, wanted: dict[str, Any], definitions: dict[str, Any]) -> list[str]:
    """Return what of a value does not fit its schema: as much of JSON Schema as ours uses."""
    match wanted:
        case {"$ref": str(ref)}:
            wrong = fits(value, definitions[ref.rpartition("/")[2]], definitions)
        case {"anyOf": list(kinds)}:
            wrong = (
                []
                if any(not fits(value, kind, definitions) for kind in kinds)
                else [f"{value!r} is none of {kinds}"]
            )
        case {"enum": list(words)}:
            wrong = [] if value in words else [f"{value!r} is none of {words}"]
        case {"type": "object", "properties": dict(properties)} if isinstance(value, dict):
            wrong = [f"unknown key {key}" for key in value if key not in properties]
            wrong += [f"missing key {key}" for key in wanted["required"] if key not in value]
            wrong += [
                inner
                for key in value
                if key in properties
                for inner in fits(value[key], properties[key], definitions)
            ]
        case {"type": "array"} if isinstance(value, list):
            wrong = [inner for item in value for inner in fits(item, wanted["items"], definitions)]
        case _:
            wrong = (
                []
                if isinstance(value, TYPES[wanted["type"]])
                else [f"{value!r} is no {wanted['type']}"]
            )
    return wrong
