"""adjourn doctor: look for what could go wrong here."""

import click

from adjourn.cli.options import verb
from adjourn.cli.session import Session
from adjourn.core import exits
from adjourn.core.errors import NotAllowed
from adjourn.core.text.render import prose
from adjourn.process.ancestry import enclosing_run
from adjourn.wiring.doctor import CheckResult, examine


@verb("doctor")
@click.option(
    "--agent",
    metavar="NAME",
    help="Instead, start this ACP agent in a scratch directory, with your model, and see whether"
    " it asks before it acts; under a gate only agents run that do.",
)
def command(session: Session, *, agent: str | None) -> int:
    """Check the store, its surroundings and the config, and suggest fixes. It changes nothing.

    Exit code 0 if all is fine, 1 if something needs attention.
    """
    session.open_any_redactor()  # a config that cannot be read is one of the findings
    if agent and (run := enclosing_run()):
        raise NotAllowed(
            f"this is inside the run {run}: no agent is probed from here",
            way_out=f"adjourn doctor --agent {agent}",
        )
    if agent:
        # It serves pages and starts threads: slow to import, and seldom needed
        from adjourn.wiring.agent_probe import probe

        findings = probe(agent)
    else:
        findings = examine(session.root, inside_run=enclosing_run())
    is_fine = all(finding.fine for finding in findings)
    if session.wants_json:
        session.print_document(
            {
                "schema_version": 1,
                "outcome": "fine" if is_fine else "attention",
                "findings": findings,
            }
        )
    else:
        session.print("\n".join(line for finding in findings for line in _lines(finding)))
    return exits.COMPLETED if is_fine else exits.FAILED


def _lines(finding: CheckResult) -> list[str]:
    mark = "fine" if finding.fine else "LOOK"
    lines = [f"{mark}  {finding.check:<11}  {prose(finding.says)}"]
    return [*lines, f"{'':<19}try: {prose(finding.remedy)}"] if finding.remedy else lines
