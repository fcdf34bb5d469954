"""What travels between actors and waits: mailboxes, replies, deadlines, timers, dead letters."""
