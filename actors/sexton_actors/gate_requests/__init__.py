"""What people are asked before an agent goes on: the gate as it is made, and what it shows them."""
