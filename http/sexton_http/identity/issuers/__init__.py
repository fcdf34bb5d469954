"""Issuers of user tokens: the built-in one and those of identity providers."""
