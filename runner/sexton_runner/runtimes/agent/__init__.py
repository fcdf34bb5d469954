"""The runtime in which a language model carries out an agent's instructions."""
