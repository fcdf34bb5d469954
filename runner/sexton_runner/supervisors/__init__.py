"""A process for each run: what a run does, says or prints costs its own supervisor time, and nobody else."""
