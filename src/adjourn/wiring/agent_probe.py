"""Probes an agent that speaks ACP: whether it asks before it acts."""

import os
from functools import partial

from adjourn.process.linux import die_with
from adjourn.runners.acp.options import read_options
from adjourn.runners.acp.probe import probe_agent
from adjourn.runners.acp.probed import Seen, keep_probe
from adjourn.runners.driver import StopRequest
from adjourn.wiring.doctor import CheckResult
from adjourn.wiring.runners import config_table


def probe(name: str) -> list[CheckResult]:
    """Start an agent, see what it does when it is told to act, and keep what was seen."""
    setup = read_options({"agent": name}, os.environ, config_table("acp"))
    seen = probe_agent(
        setup, os.environ, bind=partial(die_with, os.getpid()), interrupts=StopRequest()
    )
    keep_probe(os.environ, setup, seen)

    version = f"{name} {seen.version}".strip()
    other = f"use another mode or setting of {name}, in which it asks"
    found = [
        CheckResult(
            check=what,
            fine=verdict is not Seen.ACTS,
            says=verdict.value,
            remedy=other if verdict is Seen.ACTS else None,
        )
        for what, verdict in seen.verdicts.items()
    ]
    if seen.is_fine:
        return [
            *found,
            CheckResult(check="agent", fine=True, says=f"{version} asks before it acts"),
        ]
    says = f"{version} was not seen to ask about a command: under a gate it is refused"
    remedy = f"trust = true in [acp.{name}] of the config, if that is what you want"
    return [*found, CheckResult(check="agent", fine=False, says=says, remedy=remedy)]
