"""The group-commit writer of the hot rows."""
