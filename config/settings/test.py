"""The test suite: the demo's shape with cheap passwords and a fixed key."""

from config.settings.base import *

DEMO = True

SECRET_KEY = "for-the-test-suite-only"  # noqa: S105
AUDIT_KEY = "for-the-audit-of-the-test-suite-only"
ALLOWED_HOSTS = ["localhost", "127.0.0.1", "testserver"]
AUTH_PASSWORD_VALIDATORS = []
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = True
