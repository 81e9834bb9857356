"""The MCP server: a parent agent starts tasks, watches them, and decides where it may."""
