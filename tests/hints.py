"""The forms that a `resume_hint` may have. Each is run as printed by a test (A-R29)."""

import shlex
from collections.abc import Iterator
from typing import Any

# Run as printed by tests/e2e/test_hints.py
OF_COMMANDS = frozenset(
    {
        "-c ID",
        "-c ID --approve",
        "-c ID --reject",
        "-c ID TEXT",
        "-c ID --answer",
        "resume ID",
        "wait ID",
        "show ID",
    }
)
# By tests/plans, which execute what `plan show` says
OF_PLANS = frozenset({"execute ID"})
# By tests/e2e/test_foreign_resume.py
OF_FOREIGN_AGENTS = frozenset({"-c ID --approve-all"})
# By tests/agent/test_faults.py, test_decisions.py and, where a thread was not saved yet,
# tests/codex/test_fake.py
OF_AGENTS = frozenset(
    {
        "-c ID --approve --reject",
        "resume ID --max-tokens",
        "restart ID",
        "-c ID --max-steps",
        "-c ID --max-tokens",
        "-c ID --max-cost",
        "-c ID --max-tokens --max-cost",
    }
)
WITHOUT_VALUE = frozenset({"--approve-all", "--reject-all"})
FORMS = OF_COMMANDS | OF_PLANS | OF_FOREIGN_AGENTS | OF_AGENTS


def form_of(hint: str) -> str:
    """Return a hint with its values left out: the verb, what it names, and its options, each once."""
    _, *words = shlex.split(hint)
    words = [word for word in words if not word.startswith("--store=")]
    if "--store" in words:  # the same, about a store that was named
        at = words.index("--store")
        del words[at : at + 2]
    verb, named, *rest = words
    assert named, hint
    options: dict[str, None] = {}
    following = iter(rest)
    for word in following:
        if word == "--" or not word.startswith("--"):
            options["TEXT"] = None
            break
        options[word] = None
        if word not in WITHOUT_VALUE:
            next(following)
    return " ".join([verb, "ID", *options])


def hints_in(document: Any) -> Iterator[str]:
    """Yield every `resume_hint` of a JSON document."""
    if isinstance(document, dict):
        if isinstance(document.get("resume_hint"), str):
            yield document["resume_hint"]
        for each in document.values():
            yield from hints_in(each)
    elif isinstance(document, list):
        for each in document:
            yield from hints_in(each)


def unknown_hints(printed: bytes) -> list[str]:
    """Return the hints in a printed JSON document whose form no test runs."""
    import msgspec

    if b'"resume_hint"' not in printed:
        return []
    try:
        document = msgspec.json.decode(printed)
    except msgspec.DecodeError:
        return []  # lines of a log, or a text that quotes one
    return [hint for hint in hints_in(document) if form_of(hint) not in FORMS]
