"""A terminal that waits for a token: approved by a person, verified by six digits, handed over once."""
