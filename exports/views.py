"""The owner's pages of an export: file, progress, cancel. All others get not found."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterator
from functools import wraps
from typing import BinaryIO, Final, cast
from uuid import UUID

from asgiref.sync import sync_to_async
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.core.files.storage import default_storage
from django.core.handlers.asgi import ASGIRequest
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    JsonResponse,
    StreamingHttpResponse,
)
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import content_disposition_header, url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST, require_safe

from exports.errors import ExportFinished, ExportGone, ExportNotFound, ExportNotReady
from exports.formats import FORMATS
from exports.models import Export
from exports.names import name_shown
from exports.progress import progress_percent
from exports.recording import denial_recorded, export_recorded
from exports.selectors import export_download, export_for
from exports.services import cancellable, export_cancel
from exports.states import ExportState
from exports.words import export_sentence, export_title
from reviews.audit.services import person
from reviews.audit.words import Action

log = logging.getLogger("exports")

CHUNK: Final = 1 << 16
_View = Callable[[HttpRequest, UUID], HttpResponseBase]


def _private(view: _View) -> _View:
    """Keep every answer out of every cache, and answer not found alike for all who may not see."""

    @wraps(view)
    def wrapped(request: HttpRequest, export_id: UUID) -> HttpResponseBase:
        try:
            response = view(request, export_id)
        except ExportNotFound:
            denial_recorded(cast("User", request.user), export_id)
            raise Http404 from None
        response.headers["Cache-Control"] = "no-store, private"
        return response

    return wrapped


@require_safe
@login_required
@_private
def download(request: HttpRequest, export_id: UUID) -> HttpResponseBase:
    """Hand the file to its owner, who must have the right at this very moment."""
    user = cast("User", request.user)
    try:
        export = export_download(user, export_id)
        stored = cast("BinaryIO", default_storage.open(export.file, "rb"))
    except ExportNotReady as early:
        return _page(request, _("Still being prepared"), str(early), 409)
    except ExportGone as gone:
        return _page(request, _("No file any more"), str(gone), 410)
    except FileNotFoundError:
        log.exception("export.file_missing", extra={"export": str(export_id)})
        text = _("The file is no longer there. Please ask for the export again.")
        return _page(request, _("No file any more"), text, 410)
    export_recorded(
        Action.EXPORT_DOWNLOADED, export, person(user), bytes=export.bytes, sha256=export.sha256
    )
    log.info("export.downloaded", extra={"export": str(export_id), "actor": user.pk})
    return _file(request, export, stored)


@require_GET
@login_required
@_private
def status(request: HttpRequest, export_id: UUID) -> HttpResponseBase:
    """Say as data how the export stands; the card reads it when it has missed events."""
    return JsonResponse(_status(export_for(cast("User", request.user), export_id)))


@require_POST
@login_required
@_private
def cancel(request: HttpRequest, export_id: UUID) -> HttpResponseBase:
    """Cancel the owner's export; a form is led back to where it was sent from."""
    user = cast("User", request.user)
    export = export_for(user, export_id)
    try:
        export, code = export_cancel(export_id=export.pk, actor=user), 200
    except ExportFinished:
        export.refresh_from_db()
        code = 409
    back = request.POST.get("next", "")
    if back and url_has_allowed_host_and_scheme(back, {request.get_host()}, request.is_secure()):
        return redirect(back)
    return JsonResponse(_status(export), status=code)


def _status(export: Export) -> dict[str, object]:
    ready = export.state == ExportState.READY
    return {
        "export": str(export.pk),
        "reference": export.reference,
        "title": export_title(export),
        "state": export.state,
        "label": str(ExportState(export.state).label),
        "text": export_sentence(export),
        "done": export.rows_done,
        "total": export.rows_total,
        "percent": progress_percent(export.rows_done, export.rows_total, ready=ready),
        "bytes": export.bytes,
        "download": reverse("exports:download", args=[export.pk]) if ready else None,
        "cancel": reverse("exports:cancel", args=[export.pk]) if cancellable(export) else None,
        "expires_at": export.expires_at and export.expires_at.isoformat(),
    }


def _page(request: HttpRequest, title: str, text: str, code: int) -> HttpResponse:
    return render(request, "exports/unavailable.html", {"title": title, "text": text}, status=code)


def _file(request: HttpRequest, export: Export, stored: BinaryIO) -> StreamingHttpResponse:
    form = FORMATS[export.format]
    # A plain iterator would be read into memory whole before an asynchronous server sends it.
    later = isinstance(request, ASGIRequest)
    chunks = _ChunksLater(stored) if later else _Chunks(stored)
    response = StreamingHttpResponse(chunks, content_type=form.content_type)
    name = name_shown(export_title(export), export.reference, form.extension)
    disposition = content_disposition_header(as_attachment=True, filename=name)
    response.headers["Content-Disposition"] = disposition or "attachment"
    response.headers["Content-Length"] = str(export.bytes)
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response


class _Chunks(Iterator[bytes]):
    """The pieces of a file. Django calls `close` at the end, also when nobody has read on."""

    def __init__(self, stored: BinaryIO) -> None:
        self._stored = stored
        self.close = stored.close

    def __next__(self) -> bytes:
        if piece := self._stored.read(CHUNK):
            return piece
        raise StopIteration


class _ChunksLater(AsyncIterator[bytes]):
    """The same for an asynchronous server, which sends each piece before the next is read."""

    def __init__(self, stored: BinaryIO) -> None:
        self._read = sync_to_async(stored.read, thread_sensitive=False)
        self.close = stored.close

    async def __anext__(self) -> bytes:
        if piece := await self._read(CHUNK):
            return piece
        raise StopAsyncIteration
