"""A machine of the fleet: its standing, its offers and what it holds."""
