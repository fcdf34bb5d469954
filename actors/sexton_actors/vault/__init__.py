"""Master keys: a newer one is made, all secrets are put under it bit by bit, and the old one is forgotten."""
