"""The settings of the measured processes: the suite's, with the model that answers at once."""

from config import env
from config.settings.test import *  # noqa: F403
from config.settings.test import INSTALLED_APPS as _APPS

INSTALLED_APPS = [*_APPS, "tests.bench"]

CHAT_MODEL = env.text("CHAT_MODEL", "bench:ticket")

# As in production: whoever measures changes no static file.
WHITENOISE_AUTOREFRESH = False
