"""The execution plane: leases events, runs them in sandboxes, reports; it knows the control plane only over HTTP."""
