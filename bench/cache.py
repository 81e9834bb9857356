"""How much of a request to the model is the same after a pause: what a provider's cache can find again.

A scripted model, a call that waits, an approval, a resume. For each agent: the bytes that the request before the pause and
the one after it begin with alike, of all bytes of the one before. Claude Code and Codex are measured if they are installed.
"""

import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from _figures import Figure, report, words

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.agent.desk import command, desk, say, use
from tests.claude.scene import Scene as ClaudeScene
from tests.claude.scene import bash
from tests.codex.scene import Scene as CodexScene
from tests.codex.scene import shell
from tests.model.script import Turn
from tests.programs import program

WHOLE = 1.0  # the share of the request before that has to be the same
Requests = tuple[Any, Any]  # before the pause, and after it


def main() -> int:
    """Measure, print, and say by the exit code whether a goal was missed."""
    words(__doc__).parse_args()
    figures = list[Figure]()
    for name, ask in AGENTS.items():
        with tempfile.TemporaryDirectory(prefix="adjourn-bench-") as place:
            try:
                before, after = ask(Path(place))
            except (pytest.skip.Exception, pytest.fail.Exception) as missing:
                print(f"{name}: {missing}")
                continue
        same, of = shared(before, after)
        figures.append(
            Figure(name, f"{same:,} bytes", f"of {of:,}", same / of, WHOLE, at_least=True)
        )
    return report("The same bytes before and after a pause", figures)


def shared(before: Any, after: Any) -> tuple[int, int]:
    """Return how many bytes two requests begin with alike, and how many the first has.

    In the order in which providers read them: tools, instructions, messages.
    """
    first, second = b"".join(parts(before)), b"".join(parts(after))
    pairs = enumerate(zip(first, second, strict=False))
    shortest = min(len(first), len(second))
    return next((number for number, (a, b) in pairs if a != b), shortest), len(first)


def parts(body: Any) -> Iterator[bytes]:
    """Yield what a cache reads of a request.

    Marks that say where a cache ends are no part of it. To carry one, Claude Code writes a text as a list with one block,
    which is the same to the API: it is read so here.
    """
    for key in ("tools", "system", "instructions", "messages", "input"):
        found = body.get(key) or ()
        for each in [found] if isinstance(found, str) else found:
            yield msgspec.json.encode(_unmarked(each))


def _unmarked(value: Any) -> Any:
    if isinstance(value, dict):
        plain = {key: _unmarked(each) for key, each in value.items() if key != "cache_control"}
        if "role" in plain and isinstance(plain.get("content"), str):
            plain["content"] = [{"type": "text", "text": plain["content"]}]
        return plain
    return [_unmarked(each) for each in value] if isinstance(value, list) else value


def built_in(provider: str) -> Callable[[Path], Requests]:
    """Return what asks the built-in agent, over one of its APIs."""

    def ask(place: Path) -> Requests:
        env = {"ADJOURN_AGENT_MODEL": f"{provider}:scripted"}
        with desk(place, use(command("date", "tc_1"), text="I look."), say("Done.")) as person:
            if provider == "anthropic":
                env["ADJOURN_AGENT_BASE_URL"] = person.model.url
            paused = person.agent_run("--on-text", "complete", expect=10, env=env)
            person.resumed(paused, "--approve", "tc_1", expect=0, env=env)
            before, after = person.model.asked
            return before.body, after.body

    return ask


def claude(place: Path) -> Requests:
    """Ask Claude Code."""
    scene = ClaudeScene(place, program("claude"))
    with scene.model([Turn(text="I look.", calls=(bash("date > made.txt"),)), DONE]) as model:
        return _asked(scene, model)


def codex(place: Path) -> Requests:
    """Ask Codex, which executes what was approved."""
    scene = CodexScene(place, program("codex"))
    with scene.model([Turn(text="I look.", calls=(shell("date > made.txt"),)), DONE]) as model:
        return _asked(scene, model)


def _asked(scene: ClaudeScene | CodexScene, model: Any) -> Requests:
    scene.run(options=("--option", "on-approve=execute") if isinstance(scene, CodexScene) else ())
    scene.resume("--approve-all")
    return model.asked[0].body, model.asked[-1].body


DONE = Turn(text="Done.")
AGENTS: dict[str, Callable[[Path], Requests]] = {
    "built-in agent, OpenAI": built_in("openai"),
    "built-in agent, Anthropic": built_in("anthropic"),
    "Claude Code": claude,
    "Codex": codex,
}

if __name__ == "__main__":
    sys.exit(main())
