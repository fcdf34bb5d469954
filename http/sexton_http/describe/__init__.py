"""Describes the interface from its declarations: OpenAPI, documents, and the reference."""
