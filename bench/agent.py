"""What an agent's resume costs: approve, run the tool, ask the model, finish; beside three peers that do the same.

Each peer has an environment of its own below .dev/peers, made at the first time, and its own client for the same scripted model.
"""

import os
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from _figures import Figure, ms, report, words
from _measure import Cost, adjourn, adopt_orphans, cost_of, environment, middle
from _scripted import model

from adjourn.core.ask import Principal, Reply, Verb
from adjourn.core.states import TaskState
from adjourn.supervision.wait import wait_until
from adjourn.wiring import STORE
from adjourn.wiring.controller import open_controller

HERE = Path(__file__).resolve().parent
HOMES = HERE.parent / ".dev" / "peers"
QUIETLY = (
    "-q",
    "--disable-pip-version-check",
    "--no-warn-script-location",
    "--root-user-action=ignore",
)
PEERS = {
    "Pydantic AI": ("pydantic_ai_peer.py", ["pydantic-ai-slim[openai]"]),
    "LangGraph": (
        "langgraph_peer.py",
        ["langgraph", "langgraph-checkpoint-sqlite", "langchain-openai"],
    ),
    "OpenAI Agents": ("openai_agents_peer.py", ["openai-agents"]),
}
SCRIPT = """{"turns": [
  {"calls": [{"name": "run_command", "arguments": {"command": "date +%s%N > started"}, "id": "tc_1"}]},
  {"text": "Done."}
]}"""
STAYING: set[int] = set()  # the model and the worker, which outlive what is measured
COLD, TOOL, WARM = 1.1, 0.3, 0.1  # of the fastest peer's time


def main() -> int:
    """Measure, print, and say by the exit code whether a goal was missed."""
    parser = words(__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--peers", type=Path, default=HOMES, help="where their environments are")
    given = parser.parse_args()
    adopt_orphans()
    return beside_peers(given.peers, rounds=given.rounds)


def beside_peers(homes: Path, *, rounds: int) -> int:
    """Measure ours and theirs in turn, and print the figures."""
    with (
        tempfile.TemporaryDirectory(prefix="adjourn-bench-") as place,
        model(place, SCRIPT) as (url, pid),
    ):
        STAYING.add(pid)
        peers = {
            name: peer(homes / name.lower().replace(" ", "-"), name, place, url) for name in PEERS
        }
        ours = Ours(place, url)
        seen: dict[str, list[Cost]] = {name: [] for name in (*peers, "cold")}
        tools: list[float] = []
        for _ in range(rounds):
            for name, resume in peers.items():
                seen[name].append(resume())
            cold, tool = ours.cold()
            seen["cold"].append(cold)
            tools.append(tool)
        with ours.worker():
            warm = [ours.warm() for _ in range(rounds + 3)][3:]  # the first ones start cold
    costs = {name: middle(each) for name, each in seen.items()}
    return tell(
        {name: costs[name] for name in peers},
        costs["cold"],
        tool=median(tools),
        warm=median(warm),
        rounds=rounds,
    )


def tell(peers: dict[str, Cost], cold: Cost, *, tool: float, warm: float, rounds: int) -> int:
    """Print the figures."""
    name, fastest = min(peers.items(), key=lambda each: each[1].wall)
    beside = f"{name} {ms(fastest.wall)}"
    figures = [
        Figure(
            "resume without a worker, wall", ms(cold.wall), beside, cold.wall / fastest.wall, COLD
        ),
        Figure("until the approved tool has started", ms(tool), beside, tool / fastest.wall, TOOL),
        Figure(
            "decision to completion under a worker", ms(warm), beside, warm / fastest.wall, WARM
        ),
    ]
    code = report(f"An agent comes back, median of {rounds} rounds", figures)
    for peer_name, cost in {**peers, "adjourn, no worker": cold}.items():
        print(f"{peer_name}: wall {ms(cost.wall)}, CPU {ms(cost.cpu)}")
    return code


def peer(home: Path, name: str, place: str, url: str) -> Callable[[], Cost]:
    """Return what measures a peer's resume, in its own environment."""
    script, requirements = PEERS[name]
    interpreter = home / "bin" / "python"
    if not (home / "made").exists():
        print(f"making {home}", file=sys.stderr)
        venv.create(home, with_pip=True)
        subprocess.run([interpreter, "-m", "pip", "install", *QUIETLY, *requirements], check=True)
        (home / "made").touch()

    def resume() -> Cost:
        with tempfile.TemporaryDirectory(dir=place) as own:
            command = [str(interpreter), str(HERE / "_peers" / script)]
            cost_of([*command, "prepare", f"{own}/state", url], cwd=own, spare=STAYING)
            return cost_of([*command, "resume", f"{own}/state", url], cwd=own, spare=STAYING)

    return resume


class Ours:
    """The built-in agent, doing the same."""

    def __init__(self, place: str, url: str) -> None:
        self.place = Path(place, "ours")
        self.place.mkdir()
        Path(self.place, STORE).mkdir(mode=0o700)
        self._env = environment() | {
            "ADJOURN_AGENT_MODEL": "openai:scripted",
            "ADJOURN_AGENT_BASE_URL": url,
        }
        self._env["XDG_CONFIG_HOME"] = str(self.place)

    def _adjourn(self, *given: str, code: int = 0) -> Cost:
        return cost_of(
            [adjourn(), *given], cwd=str(self.place), exit_code=code, env=self._env, spare=STAYING
        )

    def _paused(self) -> None:
        (self.place / "started").unlink(missing_ok=True)
        self._adjourn(
            "run", "--pause-on-approval", "--on-text", "complete", "deploy to staging", code=10
        )

    def cold(self) -> tuple[Cost, float]:
        """Resume without a worker; return what that cost, and when the tool had started."""
        self._paused()
        began = time.time_ns()
        cost = self._adjourn("resume", self._newest(), "--approve-all")
        return cost, (int((self.place / "started").read_text()) - began) / 1e9

    def _newest(self) -> str:
        controller = open_controller(str(self.place / STORE))
        with controller.store.read() as view:
            task = view.tasks(limit=1)[0].id
        controller.store.close()
        return task

    @contextmanager
    def worker(self) -> Iterator[None]:
        """Have a worker at work."""
        null = subprocess.DEVNULL
        with subprocess.Popen(
            [adjourn(), "worker"], cwd=self.place, env=self._env, stdout=null, stderr=null
        ) as worker:
            STAYING.add(worker.pid)
            try:
                yield
            finally:
                worker.terminate()

    def warm(self) -> float:
        """Return how long it takes from a decision to the end of the task."""
        self._paused()
        controller = open_controller(str(self.place / STORE))
        task = self._newest()
        (ask,) = controller.scene(task).open_asks
        began = time.perf_counter()
        controller.decisions.decide(
            [Reply(ask_id=ask.id, verb=Verb.APPROVE)], by=Principal(name=f"uid:{os.getuid()}")
        )
        wait_until(
            controller,
            task,
            lambda seen: seen.state is TaskState.SUCCEEDED,
            look=lambda: None,
            timeout=60,
        )
        spent = time.perf_counter() - began
        controller.store.close()
        return spent


if __name__ == "__main__":
    sys.exit(main())
