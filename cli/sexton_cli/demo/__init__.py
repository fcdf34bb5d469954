"""The demo: the whole path of an event with real parts, described as it happens."""
