"""Help articles with a search vector that the database itself keeps up to date."""

from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVector, SearchVectorField
from django.db import models
from django.db.models import Q

from knowledge.states import State

# A generated column needs its configuration as a constant.
SEARCH_CONFIG = "english"


class Article(models.Model):
    """One help article; `shipped_hash` tells an untouched copy of ours from an edited one."""

    id = models.BigAutoField(primary_key=True)
    slug = models.SlugField(max_length=80)
    language = models.CharField(max_length=8, default="en")
    title = models.CharField(max_length=200)
    body = models.TextField()
    state = models.CharField(max_length=10, choices=State.choices, default=State.DRAFT)
    search = models.GeneratedField(
        expression=SearchVector("title", weight="A", config=SEARCH_CONFIG)
        + SearchVector("body", weight="B", config=SEARCH_CONFIG),
        output_field=SearchVectorField(),
        db_persist=True,
    )
    shipped_hash = models.CharField(max_length=64, blank=True, editable=False)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ("title",)
        indexes = (
            GinIndex(fields=("search",), name="article_search"),
            GinIndex(fields=("title",), opclasses=("gin_trgm_ops",), name="article_title_trigram"),
        )
        constraints = (
            models.UniqueConstraint(fields=("slug", "language"), name="article_slug_language"),
            models.CheckConstraint(condition=Q(state__in=State.values), name="article_state_known"),
            models.CheckConstraint(condition=~Q(title="") & ~Q(body=""), name="article_has_text"),
        )

    def __str__(self) -> str:
        return self.title
