"""The settings of processes that may be taken down: the suite's, with the deadly model."""

from config.settings.test import *  # noqa: F403
from config.settings.test import INSTALLED_APPS as _APPS

INSTALLED_APPS = [*_APPS, "tests.durability.poison"]
