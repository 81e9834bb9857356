"""Runs any agent that speaks the Agent Client Protocol: one runner for all of them."""
