"""Django's Postgres backend, with a cheaper look at whether a pooled connection lives."""
