"""The trace of an event: spans in the words of OpenTelemetry, made from what is kept of it."""
