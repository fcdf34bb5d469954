"""The execution plane: leases events, runs them in sandboxes, reports; all over HTTP."""
