"""What a TUI costs with 10,000 asks: its first paint, a key, End, memory, idle CPU, and news.

A pty drives the real program. A paint is the first byte that it writes after a key.
"""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

from _figures import Figure, ms, report, words
from _filled import copy_of, open_asks, store_with, waits_for_approval
from _measure import adjourn, cost_of, environment, middle, percentile, python
from _processes import cpu_of, memory_of

FIRST, OF_IMPORT, KEY, SLOW_KEY, END, MEGABYTES, IDLE, NEWS = 1.0, 1.6, 25, 50, 50, 60, 20, 50
_PATIENCE = 60.0
_COLUMNS, _ROWS = 120, 40


class Terminal:
    """A TUI in a terminal of its own."""

    def __init__(self, place: Path) -> None:
        self.started = time.perf_counter()
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            os.chdir(place)
            os.execve(adjourn(), [adjourn(), "tui"], {**environment(), "TERM": "xterm-256color"})
        size = struct.pack("HHHH", _ROWS, _COLUMNS, 0, 0)
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, size)

    def until(self, text: bytes) -> float:
        """Read until something was written, and return after how many seconds that was."""
        began, seen = time.perf_counter(), b""
        while text not in seen:
            assert time.perf_counter() - began < _PATIENCE, seen[-2000:]
            if select.select([self._fd], [], [], 1)[0]:
                seen += os.read(self._fd, 1 << 20)
        return time.perf_counter() - began

    def press(self, key: bytes) -> float:
        """Press a key when all is quiet, and return how long the first byte takes."""
        self.drain(0.12)
        began = time.perf_counter()
        os.write(self._fd, key)
        assert select.select([self._fd], [], [], _PATIENCE)[0]
        took = time.perf_counter() - began
        os.read(self._fd, 1 << 20)
        return took

    def drain(self, quiet: float) -> None:
        """Read until nothing was written for so long."""
        while select.select([self._fd], [], [], quiet)[0]:
            os.read(self._fd, 1 << 20)

    def close(self) -> None:
        """Quit."""
        os.kill(self.pid, signal.SIGTERM)
        os.waitpid(self.pid, 0)
        os.close(self._fd)


def main() -> int:
    """Measure, print, and say by the exit code whether a goal was missed."""
    parser = words(__doc__)
    parser.add_argument("--asks", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--keys", type=int, default=60)
    parser.add_argument("--seconds", type=float, default=10.0)
    given = parser.parse_args()
    with copy_of(store_with(given.asks, waits_for_approval)) as place:
        figures = _figures(place, given.rounds, given.keys, given.seconds)
    return report(f"A TUI, {given.asks:,} asks", figures)


def _figures(place: Path, rounds: int, keys: int, seconds: float) -> list[Figure]:
    importing = middle(
        [cost_of([python(), "-c", "import textual.app"], cwd=str(place)) for _ in range(rounds)]
    )
    walls: list[float] = []
    costs: list[float] = []
    for _ in range(rounds):
        terminal = Terminal(place)
        terminal.until(b"approval")
        walls.append(time.perf_counter() - terminal.started)
        costs.append(cpu_of(terminal.pid))
        terminal.close()
    terminal = Terminal(place)
    terminal.until(b"approval")
    terminal.drain(1.0)
    pressed = sorted(terminal.press(b"j") for _ in range(keys))
    ends = sorted(terminal.press(key) for _ in range(3) for key in (b"\x1b[F", b"\x1b[H"))
    terminal.drain(1.0)
    before = cpu_of(terminal.pid)
    time.sleep(seconds)
    idle = cpu_of(terminal.pid) - before
    resident = memory_of(terminal.pid).rss
    news = [_news(terminal, place, ask) for ask in open_asks(place, limit=3)]
    terminal.close()
    wall, cpu = sorted(walls)[rounds // 2], sorted(costs)[rounds // 2]
    median, slow = percentile(pressed, 0.5), percentile(pressed, 0.9)
    return [
        Figure("first paint", ms(wall), "", wall, FIRST, unit=" s"),
        Figure("CPU to it", ms(cpu), ms(importing.cpu), cpu / importing.cpu, OF_IMPORT),
        Figure("key to paint, median", ms(median), "", median * 1000, KEY, unit=" ms"),
        Figure("key to paint, nine in ten", ms(slow), "", slow * 1000, SLOW_KEY, unit=" ms"),
        Figure("End and Home, worst", ms(ends[-1]), "", ends[-1] * 1000, END, unit=" ms"),
        Figure("memory", f"{resident:.1f} MB", "", resident, MEGABYTES, unit=" MB"),
        Figure("idle CPU", ms(idle), f"{seconds:.0f} s", idle * 1000, IDLE, unit=" ms"),
        Figure(
            "decided elsewhere to painted", ms(min(news)), "", min(news) * 1000, NEWS, unit=" ms"
        ),
    ]


def _news(terminal: Terminal, place: Path, ask: str) -> float:
    """Return how long after another process has recorded a decision the screen changes."""
    terminal.drain(0.5)
    done = subprocess.Popen(
        [adjourn(), "reject", ask], cwd=place, env=environment(), stdout=subprocess.PIPE
    )
    # The receipt is printed right after the commit
    assert done.stdout is not None
    done.stdout.readline()
    began = time.perf_counter()
    terminal.until(b"\x1b[")
    took = time.perf_counter() - began
    done.communicate()
    return took


if __name__ == "__main__":
    sys.exit(main())
