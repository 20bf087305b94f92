"""Real servers for a machine that has none: Postgres and Redis from wheels, kept in the home."""
