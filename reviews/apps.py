"""The Django application of reviews."""

from django.apps import AppConfig


class ReviewsConfig(AppConfig):
    """Reviews: one pending human decision about one call."""

    name = "reviews"
    verbose_name = "Reviews"
