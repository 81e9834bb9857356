"""Rules, and how they judge a call."""
