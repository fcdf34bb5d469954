"""Actors that act at a fixed interval: each finds in the database what no timer or message has reached."""
