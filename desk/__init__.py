"""The pages and the JSON interface."""
