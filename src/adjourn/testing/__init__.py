"""What people need who write a store, a runner or a notifier: a memory store and contract suites."""
