"""All rows of the database: a view inside a read, a change inside a transaction."""

from adjourn.stores.locks import NoLeases
from adjourn.stores.sqlite.asks import AskRows
from adjourn.stores.sqlite.calls import CallRows
from adjourn.stores.sqlite.tasks import TaskRows
from adjourn.stores.sqlite.trail import TrailRows


class Rows(TaskRows, CallRows, AskRows, TrailRows, NoLeases):
    """Turns rows into values and values into rows."""
