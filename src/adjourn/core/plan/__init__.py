"""Plans: their file, their tasks, their document."""
