"""The desk's addresses."""

from django.contrib.auth.views import LoginView
from django.urls import URLPattern, path

urlpatterns: list[URLPattern] = [
    path("login/", LoginView.as_view(), name="login"),
]
