"""The fork server: starts shims quickly, from a process that holds no secrets of a run."""
