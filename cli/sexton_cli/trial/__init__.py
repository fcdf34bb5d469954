"""Tries an agent on this machine: a server in memory and a runner, both for one event."""
