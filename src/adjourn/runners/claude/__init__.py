"""Claude Code: started headless, held at its hook, paused, and resumed in the very same session."""
