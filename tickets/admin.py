"""Tickets in Django's admin: look, close and open again; the texts stay as they were written."""

from typing import cast

from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from reviews.admin_rights import ByWhatIsShown
from tickets.errors import MoveRefused
from tickets.models import Note, Ticket
from tickets.selectors import tickets_for
from tickets.services import ticket_move
from tickets.states import State


def _actor(request: HttpRequest) -> User:
    return cast("User", request.user)


class NoteInline(admin.TabularInline[Note, Ticket]):
    """The notes of a ticket, as they were written."""

    model = Note
    fields = ("created_at", "author", "text")
    readonly_fields = fields
    extra = 0
    can_delete = False

    def has_add_permission(self, request: HttpRequest, obj: Ticket | None = None) -> bool:
        """Notes are added by the service only."""
        return False


@admin.register(Ticket)
class TicketAdmin(ByWhatIsShown, admin.ModelAdmin[Ticket]):
    """The tickets of a person's teams."""

    list_display = ("reference", "subject", "state", "priority", "requester", "created_at")
    list_filter = ("state", "priority")
    search_fields = ("reference", "subject", "payment_reference")
    fields = (
        "reference",
        "subject",
        "body",
        "state",
        "priority",
        "payment_reference",
        "requester",
        "created_at",
        "updated_at",
    )
    readonly_fields = fields
    inlines = (NoteInline,)
    actions = ("tickets_close", "tickets_reopen")
    list_per_page = 50

    def get_queryset(self, request: HttpRequest) -> QuerySet[Ticket]:
        """Leave out other teams' tickets, so that they are not found."""
        user = _actor(request)
        if user.has_perm("audit.view_entry") and not self.has_move_permission(request):
            # An auditor, who looks at all teams and moves nothing.
            return super().get_queryset(request)
        return tickets_for(user)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Tickets are opened in a conversation."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Ticket | None = None) -> bool:
        """The page edits nothing; states move by the actions."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Ticket | None = None) -> bool:
        """What was asked stays."""
        return False

    def has_move_permission(self, request: HttpRequest) -> bool:
        """Move tickets with the right to change them."""
        return _actor(request).has_perm("tickets.change_ticket")

    @admin.action(permissions=["move"], description=gettext_lazy("Close the chosen tickets"))
    def tickets_close(self, request: HttpRequest, queryset: QuerySet[Ticket]) -> None:
        """Close each that is not closed."""
        self._move(request, queryset, State.CLOSED)

    @admin.action(permissions=["move"], description=gettext_lazy("Open the chosen tickets again"))
    def tickets_reopen(self, request: HttpRequest, queryset: QuerySet[Ticket]) -> None:
        """Open each that is not open."""
        self._move(request, queryset, State.OPEN)

    def _move(self, request: HttpRequest, queryset: QuerySet[Ticket], to: State) -> None:
        tickets, refused = list(queryset), []
        for ticket in tickets:
            try:
                ticket_move(ticket=ticket, actor=_actor(request), to=to)
            except MoveRefused as refusal:
                refused.append(str(refusal))
        passed = {"passed": len(tickets) - len(refused), "total": len(tickets)}
        level = messages.WARNING if refused else messages.SUCCESS
        self.message_user(request, _("%(passed)d of %(total)d moved.") % passed, level)
        for sentence in refused:
            self.message_user(request, sentence, messages.WARNING)
