"""Reads the files that people write: config, policies, rules, principals, supervision."""
