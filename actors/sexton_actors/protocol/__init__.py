"""What can be told to each actor or asked of it, and what it answers: one module per actor."""
