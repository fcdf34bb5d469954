"""What the product needs of the outside: a chat platform, the keeper of the master keys, whoever traces."""
