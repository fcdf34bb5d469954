"""A change of an agent's own files: drafted by a run or a person, decided by a person."""
