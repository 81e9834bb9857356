"""The inbox that fills a terminal: `adjourn tui`, with the extra `tui`."""
