"""An installed agent: what wakes it, whether it may be woken, and its status."""
