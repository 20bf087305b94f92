"""The address table: admin, health pages, and everything else in the desk."""

from django.contrib import admin
from django.urls import include, path

from config import health

urlpatterns = [
    path("healthz", health.live, name="live"),
    path("readyz", health.ready, name="ready"),
    path("admin/", admin.site.urls),
    path("", include("desk.urls")),
]
