"""What a lease may become, and what each call on it is answered."""
