"""Lets any headless agent or tool stop for a person, leave, and come back with the answer."""
