"""Runs Codex: its app-server, or `codex exec` where there is none."""
