"""The shell of the TUI's tests: its store may be opened in this process, too."""

from tests.tui.conftest import shell

__all__ = ["shell"]
