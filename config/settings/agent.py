"""The assistant: model, limits, stop mode, and the dotted paths by which tools reach the graph."""

from config import env

CHAT_MODEL = env.text("CHAT_MODEL", "offline:planner")
GROQ_API_KEY = env.text("GROQ_API_KEY", "")
MODEL_TIMEOUT_SECONDS = env.number("MODEL_TIMEOUT_SECONDS", 60, minimum=1, maximum=600)

STOP_MODE = env.choice("STOP_MODE", "hard", ("hard", "polish", "never"))
RUN_LEASE_SECONDS = env.number("RUN_LEASE_SECONDS", 6, minimum=2, maximum=600)
CHECKPOINT_KEEP_HOURS = env.number("CHECKPOINT_KEEP_HOURS", 24, minimum=1, maximum=24 * 365)
RUN_LIMITS = env.amounts(
    "RUN_LIMITS",
    {"model_calls": 12, "tool_calls": 24, "tokens": 60_000, "seconds": 300, "tries": 3},
    closed=True,
    minimum=1,
    # What the rows of a run can count.
    maximums={"model_calls": 32_767},
)

# Each entry is a list of tools; a new file of tools is registered here and nowhere else.
TOOLSETS = [
    "payments.tools.TOOLS",
    "tickets.tools.TOOLS",
    "knowledge.tools.TOOLS",
    "exports.tools.TOOLS",
]
RUN_SCOPE = "payments.selectors.scope_of"
# Whose runs a person may look at in the administration: colleagues, and customers of their teams.
RUN_REACH = "payments.review_records.reach_of"
# Runs that have ended and whose work goes on elsewhere: their checkpoints stay meanwhile.
CHECKPOINTS_NEEDED = "exports.selectors.runs_exporting"

REVIEW_SUBJECTS = {
    "refund": "payments.reviewing.RefundSubject",
    "charge": "payments.reviewing.ChargeSubject",
}
# What the pages of reviews must know of customers and amounts, of the chat, and of what came of it.
REVIEW_LEDGER = "payments.review_records.Ledger"
REVIEW_LINES = "agent_core.runs.reading.conversation_lines"
REVIEW_WORDS = "agent_core.runs.reading.words_asked"
REVIEW_PROGRESS = "desk.settlement.settlement_of"
REVIEW_DECIDED = "agent_core.runs.services.review_decided"
# How a ticket learns its payment and its customer's team; neither app knows the other.
TICKET_PAYMENT_RESOLVER = "payments.lookups.payment_id_for"
TICKET_TEAM_RESOLVER = "payments.lookups.customer_team_id"
# What masks card numbers and secrets in what people type.
TEXT_MASK = "agent_core.redaction.redacted"
REVIEW_HOURS = env.number("REVIEW_HOURS", 8, minimum=1, maximum=24 * 30)
