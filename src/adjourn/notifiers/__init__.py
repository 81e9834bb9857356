"""Tell somebody outside what happened: a command, or a webhook."""
