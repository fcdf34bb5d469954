"""What is kept: records, the writes that change them, and the stores that keep them."""
