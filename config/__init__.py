"""Wiring only: settings, servers, process start. Loads the Celery app so that tasks find it."""

from config.celery import app as celery_app

__all__ = ["celery_app"]
