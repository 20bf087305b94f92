"""The addresses of exports, included at `exports/`."""

from __future__ import annotations

from django.urls import URLPattern, path

from exports import views

app_name = "exports"

urlpatterns: list[URLPattern] = [
    path("<uuid:export_id>/download/", views.download, name="download"),
    path("<uuid:export_id>/status/", views.status, name="status"),
    path("<uuid:export_id>/cancel/", views.cancel, name="cancel"),
]
