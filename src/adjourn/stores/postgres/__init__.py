"""Keeps tasks in PostgreSQL, for machines that share the work; its queue is Absurd's."""
