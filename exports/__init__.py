"""Documents written in the background."""
