"""A deployment moves real money and a demonstration none: the key of Stripe must fit."""

from __future__ import annotations

from typing import Any

import pytest
import stripe as library
from django.core.checks import run_checks

from config.checks import TAG
from payments.gateways.stripe import StripeGateway
from tests.platform.test_settings import LOAD, PRODUCTION, _python

LIVE, TEST = "sk_live_k", "sk_test_k"


@pytest.mark.parametrize(
    ("demo", "key", "base", "found"),
    [
        (False, LIVE, "https://api.stripe.com", []),
        (True, TEST, "http://127.0.0.1:1", []),
        (False, "", "https://api.stripe.com", ["countersign.E005"]),
        (True, "pk_test_k", "https://api.stripe.com", ["countersign.E005"]),
        (False, TEST, "https://api.stripe.com", ["countersign.E006"]),
        (False, "rk_test_k", "https://api.stripe.com", ["countersign.E006"]),
        (True, LIVE, "https://api.stripe.com", ["countersign.E006"]),
        (False, LIVE, "http://proxy.example", ["countersign.E007"]),
    ],
)
def test_a_key_that_does_not_fit_the_deployment_is_refused(
    settings: Any, demo: bool, key: str, base: str, found: list[str]
) -> None:
    settings.PAYMENT_GATEWAY, settings.DEMO = "stripe", demo
    settings.STRIPE_API_KEY, settings.STRIPE_API_BASE = key, base
    said = [check for check in run_checks(tags=[TAG]) if "E00" in str(check.id)]
    assert [check.id for check in said] == found
    assert [check for check in said if key and key in check.msg] == []


def test_no_key_is_asked_for_while_the_sandbox_is_used(settings: Any) -> None:
    settings.PAYMENT_GATEWAY, settings.STRIPE_API_KEY = "sandbox", ""
    assert [check for check in run_checks(tags=[TAG]) if "E00" in str(check.id)] == []


def test_production_with_stripe_names_the_key_that_is_missing() -> None:
    done = _python("-c", LOAD, **PRODUCTION, PAYMENT_GATEWAY="stripe")
    assert done.returncode == 1
    assert "STRIPE_API_KEY must be set" in done.stderr.splitlines()[-1]


def test_nothing_but_the_telemetry_is_set_in_the_library_for_the_whole_process() -> None:
    StripeGateway()
    assert library.enable_telemetry is False
    assert library.api_key is None
    assert library.max_network_retries == 2
    assert library.api_base == "https://api.stripe.com"
