"""Reads the workspace: file digests, git's HEAD, and what changed."""
