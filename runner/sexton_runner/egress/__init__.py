"""The way out of a run: one proxy for each, which lets through what the agent's policy allows."""
