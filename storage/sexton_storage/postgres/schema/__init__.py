"""What the schema is made of, whom it serves, and what a step towards it costs others."""
