"""SQL text, and how records become rows."""
