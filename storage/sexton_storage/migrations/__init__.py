"""The schema as plain SQL, one file a step, each run once and never changed."""
