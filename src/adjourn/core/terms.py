"""The terms on which an approval counts."""

from enum import StrEnum

import msgspec


class Approver(StrEnum):
    """Who may approve."""

    ANY = "any"
    HUMAN = "human"


class Terms(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an approval needs to count."""

    approver: Approver = Approver.ANY
    not_requester: bool = False
    signed: bool = False
    by_name: bool = False  # `--approve-all` does not cover it
