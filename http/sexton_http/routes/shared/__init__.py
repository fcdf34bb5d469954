"""What several routes share."""
