"""Edited arguments of a call, and the schema that they must match."""
