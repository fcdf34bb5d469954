"""How it changes: every state machine of the product, as pure transitions behind mailboxes."""
