"""A deployment on separate containers: everything named by the environment, nothing assumed."""

from config import env
from config.home import BASE_DIR
from config.settings.base import *

DEMO = False
if env.flag("DEMO"):
    raise env.SettingRefused(
        "DEMO is refused by the production settings; use config.settings.demo for a demonstration."
    )
if STOP_MODE == "never":
    raise env.SettingRefused(
        "STOP_MODE=never is refused by the production settings; whoever has the right "
        "runs.measure_runs measures single messages."
    )

SECRET_KEY = env.text("SECRET_KEY")
# Kept apart from the database: whoever has both can rewrite what happened.
AUDIT_KEY = env.text("AUDIT_KEY")
if len(AUDIT_KEY) < 32 or AUDIT_KEY == SECRET_KEY:
    raise env.SettingRefused(
        "AUDIT_KEY must have at least 32 characters and be another one than SECRET_KEY."
    )
ALLOWED_HOSTS = env.words("ALLOWED_HOSTS")
CSRF_TRUSTED_ORIGINS = env.words("CSRF_TRUSTED_ORIGINS", ())

_offline_allowed = env.flag("ALLOW_OFFLINE_MODEL")
if CHAT_MODEL.startswith("offline:") and not _offline_allowed:
    raise env.SettingRefused(
        "CHAT_MODEL is the offline model, which only plans the documented requests; "
        "name a real model, or set ALLOW_OFFLINE_MODEL=1."
    )

# Required here: the addresses of a demo that happens to run on the machine must not be taken.
for _name in ("DATABASE_URL", "REDIS_URL"):
    env.text(_name)
if PAYMENT_GATEWAY == "sandbox":
    env.text("SANDBOX_URL")
elif PAYMENT_GATEWAY == "stripe":
    env.text("STRIPE_API_KEY")

SECURE_SSL_REDIRECT = env.flag("SECURE_SSL_REDIRECT", True)
SECURE_HSTS_SECONDS = env.number("SECURE_HSTS_SECONDS", 31_536_000)
SECURE_HSTS_INCLUDE_SUBDOMAINS = True
SECURE_HSTS_PRELOAD = True
SESSION_COOKIE_SECURE = True
CSRF_COOKIE_SECURE = True
if env.flag("BEHIND_PROXY"):
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")

STATIC_ROOT = BASE_DIR / "staticfiles"
STORAGES["staticfiles"] = {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"}
STORAGE_BUCKET = env.text("STORAGE_BUCKET", "")
STORAGE_ENDPOINT_URL = env.url("STORAGE_ENDPOINT_URL", ("https", "http"), "")
if STORAGE_BUCKET:
    STORAGES["default"] = {
        "BACKEND": "storages.backends.s3.S3Storage",
        "OPTIONS": {
            "bucket_name": STORAGE_BUCKET,
            "endpoint_url": STORAGE_ENDPOINT_URL or None,
            "default_acl": "private",
            "file_overwrite": False,
        },
    }
