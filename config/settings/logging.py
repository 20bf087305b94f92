"""Logs: one line an event on standard error; whoever starts the process keeps the file."""

from config import env
from config.home import home

LOG_LEVEL = env.choice("LOG_LEVEL", "INFO", ("DEBUG", "INFO", "WARNING", "ERROR"))
LOG_FORMAT = env.choice("LOG_FORMAT", "text", ("text", "json"))

# Where the launcher keeps a file for each process; a command at a terminal keeps its lines there.
LOG_FOLDER = home() / "log"

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {
        "run": {"()": "config.logs.RunFilter"},
        "reference": {"()": "config.logs.ReferenceFilter"},
        "probe": {"()": "config.logs.ProbeFilter"},
    },
    "formatters": {
        "text": {"()": "config.logs.FieldsFormatter"},
        "json": {"()": "config.logs.JsonFormatter"},
    },
    "handlers": {
        "stderr": {
            "class": "logging.StreamHandler",
            "formatter": LOG_FORMAT,
            "filters": ["run", "reference"],
        }
    },
    "root": {"handlers": ["stderr"], "level": LOG_LEVEL},
    "loggers": {
        # Its own handlers would mail administrators and print every line twice.
        "django": {"handlers": [], "level": LOG_LEVEL, "propagate": True},
        "django.request": {"filters": ["probe"]},
        # These come with handlers of their own, or lead to none: their lines would not be ours.
        "uvicorn": {"handlers": [], "level": LOG_LEVEL, "propagate": True},
        "multiprocessing": {"handlers": ["stderr"], "level": "WARNING", "propagate": False},
        # At INFO this one names addresses with every request to the model or the processor.
        "httpx": {"level": "WARNING"},
        # And these tell of each table of each font, with every PDF.
        "fontTools": {"level": "WARNING"},
        "fpdf": {"level": "WARNING"},
        # At DEBUG these print whole requests: what people and customers have written.
        "groq": {"level": "WARNING"},
        "stripe": {"level": "WARNING"},
        "urllib3": {"level": "WARNING"},
        "httpcore": {"level": "WARNING"},
        "django.db.backends": {"level": "INFO"},
        # Four ticks every few seconds would bury what the tasks themselves have to say.
        "celery.beat": {"level": "WARNING"},
        "celery.worker.strategy": {"level": "WARNING"},
        "celery.app.trace": {"level": "WARNING"},
    },
}
