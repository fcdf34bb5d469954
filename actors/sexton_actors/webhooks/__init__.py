"""Who sent this, is it genuine, and what does it say: webhooks before an agent wakes."""
