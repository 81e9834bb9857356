"""An office among many that share a store: its ids are nobody else's."""

from adjourn.ports.store import Store
from adjourn.system.machine import new_id
from tests.contract.office import Office


def desk(store: Store) -> Office:
    office = Office(store)
    office.context.new_id = new_id
    return office
