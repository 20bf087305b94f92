"""Money: the gateway in use, its address, and the limits in minor units by currency."""

from config import env, runtime

PAYMENT_GATEWAYS = {
    "sandbox": "payments.gateways.sandbox.SandboxGateway",
    "stripe": "payments.gateways.stripe.StripeGateway",
}
PAYMENT_GATEWAY = env.choice("PAYMENT_GATEWAY", "sandbox", tuple(PAYMENT_GATEWAYS))
PAYMENT_TIMEOUT_SECONDS = env.number("PAYMENT_TIMEOUT_SECONDS", 2, minimum=1, maximum=120)
# After so many tries in a row that found the processor out of reach, broken or asking for less,
# within this window, nothing new begins for a while; then one effect as a probe.
PAYMENT_BREAKER_FAILURES = env.number("PAYMENT_BREAKER_FAILURES", 10, minimum=1, maximum=10_000)
PAYMENT_BREAKER_WINDOW_SECONDS = env.number(
    "PAYMENT_BREAKER_WINDOW_SECONDS", 60, minimum=1, maximum=3600
)
PAYMENT_BREAKER_REST_SECONDS = env.number(
    "PAYMENT_BREAKER_REST_SECONDS", 20, minimum=1, maximum=3600
)

_running = runtime.read() or runtime.Runtime()
SANDBOX_URL = env.url("SANDBOX_URL", ("http", "https"), "") or _running.sandbox_url

# A check compares the key's mode with the deployment: `config/checks.py`.
STRIPE_API_KEY = env.text("STRIPE_API_KEY", "")
STRIPE_API_BASE = env.url("STRIPE_API_BASE", ("https", "http"), "https://api.stripe.com")

# Events of the processor are taken while there is a secret that they are signed with; the first of
# several is the one that signs from now on, the rest are on their way out.
STRIPE_WEBHOOK_SECRET = env.words("STRIPE_WEBHOOK_SECRET", ())
PROCESSOR_EVENT_KEEP_DAYS = env.number("PROCESSOR_EVENT_KEEP_DAYS", 90, minimum=4, maximum=3650)
# Whether the daily comparison of the books takes over what the processor says for certain.
RECONCILE_APPLY = env.flag("RECONCILE_APPLY", True)

REFUND_DAILY_LIMIT = env.amounts(
    "REFUND_DAILY_LIMIT", {"EUR": 50_000, "USD": 50_000, "JPY": 8_000_000}
)
# A payment older than this is not refunded to what it was paid with; 0 for no limit.
REFUND_MAX_AGE_DAYS = env.number("REFUND_MAX_AGE_DAYS", 0, minimum=0, maximum=36_500)
CHARGE_REVIEW_ABOVE = env.amounts(
    "CHARGE_REVIEW_ABOVE", {"EUR": 200_000, "USD": 200_000, "JPY": 30_000_000}
)

# Tells a call that said "is being checked" how it has ended, and asks the ledger the same.
CALL_SETTLED = "agent_core.runs.settling.call_settled"
CALL_OUTCOME = "payments.settled.call_outcome"
# Opens the case of a refund that failed after the processor had accepted it.
REFUND_FAILED_CASE = "tickets.services.case_open"
# Tells a conversation how something that was being checked has ended.
CONVERSATION_NOTICE = "agent_core.runs.services.notice_post"
