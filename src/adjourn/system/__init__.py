"""One of each mechanism of the operating system: files, locks, signals."""
