"""Starts, gates, watches and kills what runs."""
