"""Keeps tasks in one SQLite file."""
