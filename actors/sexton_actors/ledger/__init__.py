"""A tenant's money: one balance, and who must know when there is some again."""
