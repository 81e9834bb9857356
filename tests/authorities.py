"""Who may decide, where a test is about something else.

Everybody, and nobody's signature counts.
"""

from typing import Any

from adjourn.core.ask import Principal
from adjourn.core.authority.scopes import ALL, Rights
from adjourn.core.errors import NotAllowed
from adjourn.ports.store import Change, View


class Outside:
    """Takes every caller to be outside of all runs.

    Whether it is, tests/security asks the real program.
    """

    def require_outside(self, view: View, by: Principal, verb: str) -> None:
        del view, by, verb

    def note_place(self, tx: Change, by: Principal) -> None:
        del tx, by


class Everybody(Outside):
    """Lets everybody do everything."""

    def caller(self) -> str:
        return "uid:0"

    def rights(self, by: Principal) -> Rights:
        assert by.name
        return Rights(scopes=ALL)


class NobodySigns:
    """Knows no signature."""

    def signer(self, document: bytes, signature: str) -> str:
        raise NotAllowed(f"nobody signed {len(document)} bytes with {len(signature)}")


def everybody() -> dict[str, Any]:
    """Return what a controller needs for both."""
    return {"authoriser": Everybody(), "signatures": NobodySigns()}
