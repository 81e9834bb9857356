"""A repository that names a database: nobody connects to it, and no password goes there."""

import shutil
import socket
import threading

import pytest

from tests.e2e.shell import Shell

pytestmark = pytest.mark.one_machine("it is about a directory that leads to a database")


class Server:
    """Listens, and counts who connects."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.connections = 0
        threading.Thread(target=self._count, daemon=True).start()

    def _count(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self.connections += 1
            connection.close()

    def close(self) -> None:
        self._socket.close()


LOOKS = [
    ("tasks",),
    ("inbox",),
    ("show", "last"),
    ("run", "--", "true"),
    ("worker", "--once"),
    ("worker", "--status"),
    ("approve", "abcdefgh"),
    ("doctor",),
    ("audit", "verify"),
    ("store", "backup", "x.db"),
    ("policy", "explain", "--", "ls"),
    ("rules",),
    ("notify", "--flush"),
    ("prune",),
]


def test_an_address_that_came_with_a_repository_leads_nowhere(shell: Shell) -> None:
    server = Server()
    shell.store.mkdir(mode=0o700)
    address = shell.store / "database.json"
    address.write_text(
        f'{{"url": "postgresql://victim@127.0.0.1:{server.port}/adjourn?connect_timeout=2"}}'
    )
    address.chmod(0o600)
    for words in LOOKS:
        done = shell.adjourn(*words, env={"PGPASSWORD": "very secret"}, expect=None)
        assert "Traceback" not in done.err, words
        if words[0] in {"tasks", "run", "worker", "approve"}:
            assert done.code == 5, (words, done.err)
            assert "adjourn store adopt" in done.err
    assert server.connections == 0
    shell.adjourn("store", "adopt", expect=2)
    assert server.connections == 0
    told = shell.adjourn("store", "adopt", "--yes")
    assert f"127.0.0.1:{server.port}" in told.out
    shell.adjourn("tasks", expect=1)
    assert server.connections > 0
    shutil.copytree(shell.store, shell.place / "copied")
    known = server.connections
    shell.adjourn("tasks", "--store", str(shell.place / "copied"), expect=5)
    assert server.connections == known
    server.close()
