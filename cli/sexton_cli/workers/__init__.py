"""Several processes that are one server: the parent that keeps them, and what each of them is told."""
