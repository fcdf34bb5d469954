"""Rings those who read an agent's stream when frames were added."""
