"""What every store promises: the contract of `adjourn.ports.store`, as tests."""

from adjourn.testing.store_finding import StoreFinding
from adjourn.testing.store_records import StoreRecords
from adjourn.testing.store_trail import StoreTrail


class StoreContract(StoreRecords, StoreFinding, StoreTrail):
    """The tests that a store has to pass.

    Derive a class whose name begins with `Test` and say in `make_store` how the store is opened.
    """
