"""`make run` on one machine: sample accounts, a key of its own, loopback only."""

from config import env
from config.secret import secret_key
from config.settings.base import *

DEMO = True

SECRET_KEY = env.text("SECRET_KEY", "") or secret_key()
AUDIT_KEY = env.text("AUDIT_KEY", "") or secret_key("audit-key")
ALLOWED_HOSTS = env.words("ALLOWED_HOSTS", ("localhost", "127.0.0.1", "[::1]"))

# Sample accounts have the password "demo"; the rules would refuse it.
AUTH_PASSWORD_VALIDATORS = []

# Static files are served from where they lie: no collecting step before the first start.
WHITENOISE_USE_FINDERS = True

# What `sample_data` calls besides loading its own records.
SAMPLE_LOADERS = ["knowledge.services.articles_load"]
