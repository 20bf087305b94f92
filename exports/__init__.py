"""Exports: a document of many rows, written in the background and fetched by its owner."""
