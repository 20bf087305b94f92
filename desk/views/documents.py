"""Documents that references lead to: receipts, invoices, one export."""

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from desk.documents import sheet_of
from desk.reach import export_or_404
from desk.transcript import export_card
from desk.views.people import person


@never_cache
@login_required
@require_safe
def document(request: HttpRequest, reference: str) -> HttpResponse:
    """Show a receipt or an invoice as a sheet that prints well."""
    return render(request, "desk/document.html", {"sheet": sheet_of(person(request), reference)})


@never_cache
@login_required
@require_safe
def export(request: HttpRequest, reference: str) -> HttpResponse:
    """Show one export of this person with its file or its progress."""
    found = export_or_404(person(request), reference)
    return render(request, "desk/export.html", {"export": export_card(found)})
