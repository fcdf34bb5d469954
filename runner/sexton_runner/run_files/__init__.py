"""The files of a run: those that its event brings, and those that it leaves, which are sent on."""
