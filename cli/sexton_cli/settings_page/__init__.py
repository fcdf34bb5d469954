"""Makes the page about settings from the options, variables and limits that the code has."""
