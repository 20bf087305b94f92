"""Celery: queues, routes and the beat table. Task names are persisted data; see `docs/map.md`."""

from kombu import Queue

from config import env
from config.broker import broker_url
from config.settings.database import REDIS_URL

CELERY_BROKER_URL = broker_url(REDIS_URL)
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
# What a dead worker had taken and not begun is offered again after this time.
_VISIBILITY = env.number("BROKER_VISIBILITY_TIMEOUT_SECONDS", 3600, minimum=1)
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "visibility_timeout": _VISIBILITY,
    # How often a worker looks for it; by kombu's own defaults only every hundred seconds.
    "unacked_restore_interval": min(10, _VISIBILITY),
    "unacked_restore_throttle": 1,
    "socket_timeout": 15,
    "socket_connect_timeout": 5,
    "socket_keepalive": True,
}
CELERY_TASK_SERIALIZER = "json"
CELERY_RESULT_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_IGNORE_RESULT = True
# The lease on the row, not the broker's acknowledgement, says who works and who must take over.
CELERY_TASK_ACKS_LATE = False
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_TIMEZONE = "UTC"

CELERY_TASK_DEFAULT_QUEUE = "maintenance"
CELERY_TASK_CREATE_MISSING_QUEUES = False
CELERY_TASK_QUEUES = [
    Queue(name, routing_key=name) for name in ("turns", "quarantine", "exports", "maintenance")
]
CELERY_TASK_DEFAULT_ROUTING_KEY = "maintenance"
# By explicit name; every task that is not listed goes to `maintenance`.
CELERY_TASK_ROUTES = {
    "runs.run_work": {"queue": "turns"},
    "runs.run_quarantine": {"queue": "quarantine"},
    "exports.export_write": {"queue": "exports"},
}


def _every(task: str, seconds: float) -> dict[str, object]:
    # A tick that nobody took before the next one is worthless.
    return {"task": task, "schedule": seconds, "options": {"expires": max(seconds * 2, 10)}}


CELERY_BEAT_SCHEDULE = {
    "runs-sweep": _every("runs.run_sweep", 2.0),
    "checkpoints-prune": _every("runs.checkpoints_prune", 3600.0),
    "intents-settle": _every("payments.intents_settle", 5.0),
    "processor-events": _every("processor.events_sweep", 10.0),
    # Asks each hour whether the last two days have been compared, and does it once.
    "processor-reconcile": _every("processor.reconcile_daily", 3600.0),
    "reviews-expire": _every("reviews.reviews_expire", 60.0),
    "audit-chain": _every("audit.chain_extend", 10.0),
    "exports-sweep": _every("exports.exports_sweep", 10.0),
}

# Where the operators' page asks what lies in the queues and which workers live.
WORK_OVERVIEW = "config.heartbeat.overview"
