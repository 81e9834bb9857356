"""Whether a session of an agent can still be resumed, and which agents are installed.

It changes nothing, and starts nothing.
"""

import os
from collections.abc import Iterator, Mapping

from adjourn.core.agent.calls import SessionCheck
from adjourn.core.errors import AdjournError
from adjourn.core.task import Spec
from adjourn.ports.runner import LeftSession
from adjourn.runners.acp.agents import OURS
from adjourn.runners.acp.memory import DOCUMENT, memory_of
from adjourn.runners.acp.options import Setup, setup_of
from adjourn.runners.acp.probed import probe_key, read_probes
from adjourn.runners.acp.session import agent_argv
from adjourn.runners.installed import check_program


def check_session(spec: Spec, left: LeftSession) -> Iterator[SessionCheck]:
    """Check the session and the program of a task that has left."""
    memory = memory_of(left.documents(DOCUMENT), session=left.of)
    setup = setup_of(spec.setup)
    if memory is None or not memory.session:
        yield SessionCheck(
            thing="session", fine=left.ref is None, says="it had not begun when it left"
        )
    elif left.ref not in {None, memory.session}:
        says = f"{left.ref} is not the session that was kept, {memory.session}"
        yield SessionCheck(thing="session", fine=False, says=says)
    else:
        says = f"{memory.session}; {setup.name} says whether it still has it when it starts"
        yield SessionCheck(thing="session", fine=True, says=says)
    yield check_program(
        setup.name,
        before=memory.version if memory else "",
        starts=False,
        find=lambda: agent_argv(setup, left.environment, workspace=spec.workspace),
        version=lambda _: "",
    )


def diagnose(environment: Mapping[str, str], *, workspace: str) -> str | None:
    """Say which agents of the table are installed, and which were seen to ask."""
    probes, found = read_probes(environment), list[str]()
    for name, agent in OURS.items():
        setup = Setup(name=name, agent=agent)
        try:
            agent_argv(setup, environment, workspace=workspace)
        except AdjournError:
            continue
        probe = probes.get(probe_key(setup))
        seen = "not probed" if probe is None else "asks" if probe.is_fine else "does not ask"
        found.append(f"{name} ({seen})")
    if not found:
        return None
    agents = ", ".join(found)
    return f"ACP agents: {agents}; adjourn doctor --agent NAME probes one{os.linesep}".rstrip()
