"""What the audit records, by whom and from where; stored data, tabled in `docs/audit.md`."""

from django.db.models import TextChoices


class Action(TextChoices):
    """One kind of thing that is recorded."""

    MESSAGE_ASKED = "message.asked", "A person asked the assistant for something"
    CALL_BLOCKED = "call.blocked", "A rule refused a step of the assistant"
    RUN_PARKED = "run.parked", "A request was set aside"
    RUN_PUSHED = "run.pushed", "An operator sent a request on"
    RUN_REQUEUED = "run.requeued", "An operator let a request that was set aside go on"
    TICKET_OPENED = "ticket.opened", "A ticket was opened"
    TICKET_MOVED = "ticket.moved", "A ticket came into another state"
    REVIEW_PROPOSED = "review.proposed", "A decision was asked for"
    REVIEW_VIEWED = "review.viewed", "A review was opened, with its conversation"
    REVIEW_APPROVED = "review.approved", "Approved as it stood"
    REVIEW_CHANGED = "review.changed", "Approved with a lower amount or another reason"
    REVIEW_RAISED = "review.raised", "Raised, so that somebody else must decide"
    REVIEW_REJECTED = "review.rejected", "Rejected"
    REVIEW_WITHDRAWN = "review.withdrawn", "Withdrawn"
    REVIEW_EXPIRED = "review.expired", "Nobody decided in time, or the run ended"
    REVIEW_REFUSED = "review.refused", "A try to decide was refused"
    REVIEW_DENIED = "review.denied", "A try to open or decide what is out of reach"
    REVIEW_USED = "review.used", "An approval was used up by what it allowed"
    INTENT_BEGUN = "intent.begun", "A charge or refund was written, not yet sent"
    INTENT_JOINED = "intent.joined", "A call joined one that was on its way"
    INTENT_SENT = "intent.sent", "A try was begun at the processor"
    INTENT_UNKNOWN = "intent.unknown", "A try came to nothing that is known"
    INTENT_SUCCEEDED = "intent.succeeded", "The processor did it"
    INTENT_FAILED = "intent.failed", "The processor refused it"
    INTENT_REFUSED = "intent.refused", "The ledger refused to begin"
    REFUND_SETTLED = "refund.settled", "The bank confirmed a refund"
    REFUND_FAILED = "refund.failed", "A refund failed after the processor had accepted it"
    REFUND_OUTSIDE = "refund.outside", "A refund made at the processor was recorded"
    PAYMENT_DISPUTED = "payment.disputed", "The bank told of a dispute, or of its end"
    REFUNDS_PAUSED = "refunds.paused", "All refunds were paused"
    REFUNDS_RESUMED = "refunds.resumed", "Refunds were let go on"
    REFUNDS_REFUSED = "refunds.refused", "A try to switch refunds was refused"
    EXPORT_ASKED = "export.asked", "An export was begun"
    EXPORT_REFUSED = "export.refused", "An export was refused"
    EXPORT_READY = "export.ready", "An export's file was made"
    EXPORT_CANCELLED = "export.cancelled", "An export was cancelled"
    EXPORT_DOWNLOADED = "export.downloaded", "An export's file was handed out"
    EXPORT_DENIED = "export.denied", "A try to reach an export that is out of reach"
    DOCUMENT_VIEWED = "document.viewed", "A customer's document was opened"
    DOCUMENT_DOWNLOADED = "document.downloaded", "A customer's document was handed out as a file"
    DOCUMENT_DENIED = "document.denied", "A try to reach a document that is out of reach"
    SESSION_BEGUN = "session.begun", "Somebody signed in"
    SESSION_ENDED = "session.ended", "Somebody signed out"
    SESSION_REFUSED = "session.refused", "Signing in failed"
    RECORD_ADDED = "record.added", "A row was added in the administration"
    RECORD_CHANGED = "record.changed", "A row was changed in the administration"
    RECORD_DELETED = "record.deleted", "A row was deleted in the administration"
    ROLE_GIVEN = "role.given", "A role was made or got rights"


class ActorKind(TextChoices):
    """Who acted."""

    PERSON = "person", "A person"
    ASSISTANT = "assistant", "The assistant, on behalf of a person"
    TASK = "task", "A task of the product"
    UNKNOWN = "unknown", "Nobody who had signed in"


class OriginKind(TextChoices):
    """Where it came from."""

    WEB = "web", "Desk"
    ADMIN = "admin", "Administration"
    COMMAND = "command", "Command line"
    TASK = "task", "Background work"
