"""What an agent is: its two files, read into one value or refused with the line to fix."""
