"""What each write of the journal decides, told once: records and a request in, rows and an answer out."""
