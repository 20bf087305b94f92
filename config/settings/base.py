"""What every setting shares: applications, templates, languages; composes the concerns."""

import django_stubs_ext

from config.home import BASE_DIR, home
from config.settings.agent import *
from config.settings.audit import *
from config.settings.database import *
from config.settings.exports import *
from config.settings.logging import *
from config.settings.payments import *
from config.settings.receipts import *
from config.settings.tasks import *
from config.settings.web import *

# Lets `ModelAdmin[Model]` and its like, which the type checker wants, run.
django_stubs_ext.monkeypatch()

# Demo accounts and approving from the command line exist only where this is True.
DEMO = False
DEBUG = False

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "csp",
    "config.apps.PlatformConfig",
    "agent_core.runs",
    "reviews",
    "reviews.audit",
    "payments",
    "payments.receipts",
    "payments.processor",
    "tickets",
    "knowledge",
    "exports",
    "desk",
]

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]

USE_TZ = True
TIME_ZONE = "UTC"
USE_I18N = True
LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("de", "Deutsch"), ("ru", "Русский")]
LOCALE_PATHS = [BASE_DIR / "locale"]

STORAGES = {
    "default": {
        "BACKEND": "django.core.files.storage.FileSystemStorage",
        # Files are handed out by a view that checks the person, never by their address.
        "OPTIONS": {
            "location": home() / "files",
            "file_permissions_mode": 0o600,
            "directory_permissions_mode": 0o700,
        },
    },
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
