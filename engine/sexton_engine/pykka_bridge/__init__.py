"""pykka's actors, references and futures on trio."""
