"""The processor's way in; outside the desk, since nobody signs in here."""

from django.urls import path

from payments.processor.views import hook

urlpatterns = [path("stripe/", hook, name="processor-hook")]
