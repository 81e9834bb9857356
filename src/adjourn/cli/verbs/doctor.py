"""adjourn doctor: look for what could go wrong here."""

from adjourn.cli.options import verb
from adjourn.cli.session import Session
from adjourn.core import exits
from adjourn.core.text.render import prose
from adjourn.process.ancestry import enclosing_run
from adjourn.wiring.doctor import CheckResult, examine


@verb("doctor")
def command(session: Session) -> int:
    """Check the store, its surroundings and the config, and suggest fixes. It changes nothing.

    Exit code 0 if all is fine, 1 if something needs attention.
    """
    session.open_any_redactor()  # a config that cannot be read is one of the findings
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
