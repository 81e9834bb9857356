"""The built-in agent: a loop of our own around any model."""
