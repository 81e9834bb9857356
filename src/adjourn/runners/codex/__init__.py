"""Runs Codex: its app-server, or `codex exec` without one."""
