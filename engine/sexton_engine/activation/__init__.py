"""One activation: its mailbox and instance, the steps of its life, and how a message is handled."""
