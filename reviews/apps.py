"""What is asked, of whom, and how it was decided."""

from django.apps import AppConfig


class ReviewsConfig(AppConfig):
    """What is asked, of whom, and how it was decided."""

    name = "reviews"
    label = "reviews"
