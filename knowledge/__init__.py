"""Help articles and their search."""
