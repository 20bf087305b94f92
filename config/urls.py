"""The address table: the admin, and everything else in the desk."""

from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("admin/", admin.site.urls),
    path("", include("desk.urls")),
]
