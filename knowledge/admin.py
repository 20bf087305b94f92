"""Help articles in Django's admin: written and published by whoever may change them."""

from django.contrib import admin

from knowledge.models import Article


@admin.register(Article)
class ArticleAdmin(admin.ModelAdmin[Article]):
    """The help articles; the search follows by itself."""

    list_display = ("title", "language", "state", "updated_at")
    list_filter = ("state", "language")
    search_fields = ("title", "body")
    fields = ("title", "slug", "language", "state", "body", "updated_at")
    readonly_fields = ("updated_at",)
    prepopulated_fields = {"slug": ("title",)}  # noqa: RUF012 (a dict is what Django wants)
