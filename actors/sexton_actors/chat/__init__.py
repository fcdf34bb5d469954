"""Approval requests where people talk: posted once, with buttons, and closed when they are decided."""
