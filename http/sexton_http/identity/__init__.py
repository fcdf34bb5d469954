"""Who calls and what they may do: tokens, sessions, issuers, and the context of the server."""
