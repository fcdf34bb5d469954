"""The command ``sexton``: the only wing that knows all the others, and puts them together."""
