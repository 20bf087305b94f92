"""The pages of the desk and its JSON interface, one module for each page."""
