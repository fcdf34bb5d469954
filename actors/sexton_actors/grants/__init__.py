"""Which services an agent may use: asked for by the agent, decided by people."""
