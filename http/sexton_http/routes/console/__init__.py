"""Pages of the console, one file each: what a page reads, and what its forms do."""
