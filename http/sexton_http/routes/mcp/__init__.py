"""The server's own MCP endpoint: assistants use the routes of this interface as tools."""
