"""Documents that references lead to: receipts, invoices, one export."""

from babel import Locale
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.http import content_disposition_header
from django.utils.translation import get_language
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from desk.documents import record_of, sheet_of
from desk.reach import export_or_404
from desk.transcript import export_card
from desk.views.people import person
from payments.currencies import locale_of
from payments.models import Invoice, Payment, Refund
from payments.receipts.as_html import document_html
from payments.receipts.as_pdf import document_pdf
from payments.receipts.models import Document
from payments.receipts.services import document_of
from payments.states import RefundState
from reviews.audit.services import Subject, audit_write
from reviews.audit.services import person as by_person
from reviews.audit.words import Action


@never_cache
@login_required
@require_safe
def document(request: HttpRequest, reference: str) -> HttpResponse:
    """Show what staff read about a reference, and the customer's document beside it."""
    user = person(request)
    record = _record_or_404(user, reference)
    issued = None if isinstance(record, Invoice) else document_of(record)
    return _page(request, user, record, issued)


@never_cache
@login_required
@require_safe
def document_file(request: HttpRequest, reference: str) -> HttpResponse:
    """Hand out the customer's document as a PDF."""
    user = person(request)
    record = _record_or_404(user, reference)
    issued = None if isinstance(record, Invoice) else document_of(record)
    if issued is None:
        raise Http404
    if _void(record):
        return _page(request, user, record, issued, status=410)
    _recorded(Action.DOCUMENT_DOWNLOADED, user, issued)
    answer = HttpResponse(document_pdf(issued), content_type="application/pdf")
    name = content_disposition_header(as_attachment=True, filename=f"{issued.number}.pdf")
    answer.headers["Content-Disposition"] = str(name)
    return answer


@never_cache
@login_required
@require_safe
def export(request: HttpRequest, reference: str) -> HttpResponse:
    """Show one export of this person with its file or its progress."""
    found = export_or_404(person(request), reference)
    return render(request, "desk/export.html", {"export": export_card(found)})


def _page(
    request: HttpRequest,
    user: User,
    record: Payment | Refund | Invoice,
    issued: Document | None,
    status: int = 200,
) -> HttpResponse:
    shown: dict[str, object] = {"sheet": sheet_of(record), "document": issued}
    if issued:
        shown |= {"html": document_html(issued), "language": _language_name(issued)}
        shown["void"] = record if _void(record) else None
        _recorded(Action.DOCUMENT_VIEWED, user, issued)
    return render(request, "desk/document.html", shown, status=status)


def _void(record: Payment | Refund | Invoice) -> bool:
    """Tell whether what the document says was undone; it stays, but is given to nobody."""
    return isinstance(record, Refund) and record.state == RefundState.FAILED


def _record_or_404(user: User, reference: str) -> Payment | Refund | Invoice:
    try:
        return record_of(user, reference)
    except Http404:
        denied = Subject("receipts.document", None, reference)
        audit_write(Action.DOCUMENT_DENIED, actor=by_person(user), subject=denied)
        raise


def _recorded(action: Action, user: User, issued: Document) -> None:
    subject = Subject("receipts.document", issued.pk, issued.number)
    audit_write(action, actor=by_person(user), subject=subject)


def _language_name(issued: Document) -> str:
    """Return the name of the document's language in the reader's."""
    reader: Locale = locale_of(get_language() or "en")
    return locale_of(issued.language).get_display_name(reader) or issued.language
