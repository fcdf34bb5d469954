"""Takes a request to its route and its answer back: matching, limits, idempotency, logging."""
