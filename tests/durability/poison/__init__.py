"""A model that takes its process down with it, for processes that run on this package's settings.

The product knows nothing of it: the settings here add it as an application.
"""
