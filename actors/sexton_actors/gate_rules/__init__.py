"""What an agent may do alone, and what a person must allow first: rules, conditions and anomalies."""
