"""One store a record, over PostgreSQL."""
