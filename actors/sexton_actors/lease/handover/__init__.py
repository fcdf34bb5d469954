"""What a runner gets with a lease, and how it is delivered."""
