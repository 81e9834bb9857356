"""Owns running processes: the supervisor, the worker, plans, notifications and leases."""
