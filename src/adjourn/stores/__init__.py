"""Where tasks are kept: one package or module per store."""
