"""Who did what, by which rule: rows that nobody changes, and a chain that proves it."""
