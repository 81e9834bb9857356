"""Ports: what the rest needs from a store, people, processes, runners, notifiers, the clock."""
