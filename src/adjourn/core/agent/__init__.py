"""The calls and the transcript of an agent."""
