"""A tenant's money: one balance, and who must know when it is gone or back."""
