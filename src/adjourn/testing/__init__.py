"""What people need who write a store, a runner or a notifier.

A memory store and contract suites.
"""
