"""Images: read-only roots that runs may have in place of the host's programs."""
