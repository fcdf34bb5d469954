"""How each sender signs and what its bodies mean: one module a sender."""
