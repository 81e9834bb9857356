"""Text for people and machines: rendering, redaction, times, TOML, JSON."""
