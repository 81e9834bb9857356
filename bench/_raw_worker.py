"""The least that a worker on PostgreSQL can do.

Hears NOTIFY, takes a row by SKIP LOCKED, commits, and says when.
"""

import os
import sys
import time

import psycopg

_TAKE = b"""
UPDATE raw_queue SET state = 'taken'
WHERE no = (SELECT no FROM raw_queue WHERE state = 'ready' ORDER BY no LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING no
"""


def main(url: str, path: str) -> None:
    """Take row after row, until told to stop."""
    pipe = os.open(path, os.O_WRONLY)
    with (
        psycopg.connect(url, autocommit=True) as ear,
        psycopg.connect(url, autocommit=True) as hand,
    ):
        ear.execute("LISTEN raw")
        os.write(pipe, b"0\n")
        for _ in ear.notifies():
            while hand.execute(_TAKE).fetchall():
                os.write(pipe, f"{time.perf_counter()}\n".encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
