"""The audit: what is written, what nobody may change, and what the check of the chain sees."""
