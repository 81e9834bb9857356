"""The seams: what the rest needs from a store, the people, the processes, a runner, a notifier and the clock."""
