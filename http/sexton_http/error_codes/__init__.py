"""What can go wrong, by where it comes from: each code with its cause and the way out."""
