"""The demo: the whole path of an event with real parts, told as it happens."""
