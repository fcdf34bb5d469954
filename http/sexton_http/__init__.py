"""How the service is spoken: parses, authenticates, asks the actors, spells the answer."""
