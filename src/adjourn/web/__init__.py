"""The web server: one process for the HTTP API, the pages and MCP; it needs the extra `web`."""
