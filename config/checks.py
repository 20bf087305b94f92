"""System checks of the wiring. Their ids are stable: `docs/` and deployments name them."""

from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register

TAG = "countersign"
KEYS = {"groq": "GROQ_API_KEY"}


def _dotted_paths() -> Iterator[tuple[str, str]]:
    for name in ("TOOLSETS",):
        yield from ((name, path) for path in getattr(settings, name))
    for name in ("REVIEW_SUBJECTS", "PAYMENT_GATEWAYS"):
        yield from ((name, path) for path in getattr(settings, name).values())
    single = (
        "RUN_SCOPE",
        "REVIEW_DECIDED",
        "CONVERSATION_NOTICE",
        "REFUND_FAILED_CASE",
        "CALL_SETTLED",
        "CALL_OUTCOME",
        "TICKET_PAYMENT_RESOLVER",
        "TICKET_TEAM_RESOLVER",
        "TEXT_MASK",
    )
    for name in single:
        yield name, getattr(settings, name)


@register(TAG)
def dotted_paths(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    """E001: a dotted path in the settings leads nowhere."""
    found: list[CheckMessage] = []
    for name, path in _dotted_paths():
        module, _dot, attribute = path.rpartition(".")
        try:
            if hasattr(import_module(module), attribute):
                continue
        except ModuleNotFoundError as error:
            # A module that the named one imports and that is missing is another defect.
            if error.name is None or not (module + ".").startswith(error.name + "."):
                raise
        found.append(Error(f"{name} names {path}, which does not exist.", id="countersign.E001"))
    return found


@register(TAG)
def model(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    """E002 and E003: the model's name is malformed, or its key is missing."""
    provider, colon, name = settings.CHAT_MODEL.partition(":")
    if not (provider and colon and name):
        return [
            Error(
                "CHAT_MODEL must look like provider:model, for example offline:planner.",
                id="countersign.E002",
            )
        ]
    key = KEYS.get(provider)
    if key and not getattr(settings, key):
        return [Error(f"CHAT_MODEL needs {key}, which is not set.", id="countersign.E003")]
    return []


@register(TAG)
def stripe(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    """E005 to E007, W002: Stripe without a usable key, over an open line, or unheard."""
    if settings.PAYMENT_GATEWAY != "stripe":
        return []
    key: str = settings.STRIPE_API_KEY
    if not key.startswith(("sk_test_", "sk_live_", "rk_test_", "rk_live_")):
        text = "PAYMENT_GATEWAY=stripe needs a secret key of Stripe in STRIPE_API_KEY"
        return [Error(f"{text}, like sk_test_… or sk_live_….", id="countersign.E005")]
    live = key[3:].startswith("live_")
    found: list[CheckMessage] = []
    if live and settings.DEMO:
        text = "STRIPE_API_KEY is a live key: a demonstration must not move real money."
        found.append(Error(text, id="countersign.E006"))
    if not live and not settings.DEMO:
        text = "STRIPE_API_KEY is a test key: a deployment with it would move no money."
        found.append(Error(text, id="countersign.E006"))
    if not settings.DEMO and not settings.STRIPE_API_BASE.startswith("https://"):
        text = "STRIPE_API_BASE must be an https:// address in a deployment."
        found.append(Error(text, id="countersign.E007"))
    if not settings.STRIPE_WEBHOOK_SECRET:
        text = "Without STRIPE_WEBHOOK_SECRET no events of Stripe are taken: what fails days later"
        found.append(
            Warning(f"{text} is found by the daily comparison only.", id="countersign.W002")
        )
    return found


@register(TAG)
def times(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    """W001: one model call may take longer than a whole run."""
    if settings.RUN_LIMITS["seconds"] < settings.MODEL_TIMEOUT_SECONDS:
        return [
            Warning(
                "MODEL_TIMEOUT_SECONDS is longer than the seconds that RUN_LIMITS gives a run.",
                id="countersign.W001",
            )
        ]
    return []


@register(TAG, deploy=True)
def deployment(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    """E004: a deployment with demo accounts."""
    if settings.DEMO:
        return [Error("DEMO must be off in a deployment.", id="countersign.E004")]
    return []
