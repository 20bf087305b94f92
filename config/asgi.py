"""The web entry point for uvicorn or granian."""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.demo")
django.setup(set_prefix=False)

from config.serving import Handler  # noqa: E402 - it needs the applications

application = Handler()
