"""The background work of reviews; each task calls one service."""

from celery import shared_task

from reviews.services import reviews_expire as expire


@shared_task(name="reviews.reviews_expire")
def reviews_expire() -> int:
    """End every pending review whose time is over."""
    return expire()
