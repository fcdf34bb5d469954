"""A question put to people: pending until one answer, which stands."""
