"""Templates of the pages, the words that fill them, and the frame that stands around each."""
