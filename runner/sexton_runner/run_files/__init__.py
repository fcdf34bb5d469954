"""The files that a run leaves: taken out of its sandbox, and sent to the control plane."""
