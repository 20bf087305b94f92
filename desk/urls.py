"""The desk's addresses. A test reads this table and tries every one of them as somebody else."""

from django.contrib.auth.views import LogoutView
from django.urls import URLPattern, URLResolver, include, path

from desk.views import (
    api,
    articles,
    chat,
    documents,
    line,
    operator,
    people,
    reviews,
    runs,
    stream,
    tickets,
)

urlpatterns: list[URLPattern | URLResolver] = [
    path("login/", people.SignIn.as_view(), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("", chat.home, name="home"),
    path("c/<uuid:conversation_id>/", chat.chat, name="chat"),
    path(
        "c/<uuid:conversation_id>/fragments/<slug:kind>/<uuid:item_id>/",
        chat.fragment,
        name="fragment",
    ),
    path("reviews/", reviews.inbox, name="reviews"),
    path("reviews/<uuid:review_id>/", reviews.review, name="review"),
    path("reviews/<uuid:review_id>/card/", reviews.card, name="review-card"),
    path("runs/<uuid:run_id>/", runs.run, name="run"),
    path("operator/", operator.operator, name="operator"),
    path("operator/refunds/", operator.refunds, name="operator-refunds"),
    path("operator/runs/<uuid:run_id>/push/", operator.push, name="operator-push"),
    path("operator/runs/<uuid:run_id>/requeue/", operator.requeue, name="operator-requeue"),
    path("documents/<str:reference>/", documents.document, name="document"),
    path("documents/<str:reference>/pdf/", documents.document_file, name="document-file"),
    path("tickets/", tickets.tickets, name="tickets"),
    path("tickets/<str:reference>/", tickets.ticket, name="ticket"),
    path("articles/", articles.articles, name="articles"),
    path("articles/<slug:slug>/", articles.article, name="article"),
    path("exports/", include("exports.urls")),
    path("exports/<str:reference>/", documents.export, name="export"),
    path("api/conversations/<uuid:conversation_id>/messages", api.messages, name="api-messages"),
    path("api/conversations/<uuid:conversation_id>/stop-mode", api.stop_mode, name="api-stop-mode"),
    path("api/conversations/<uuid:conversation_id>/stream", stream.stream, name="api-stream"),
    path("api/messages/<uuid:message_id>/edit", line.edit, name="api-message-edit"),
    path("api/messages/<uuid:message_id>/remove", line.remove, name="api-message-remove"),
    path("api/runs/<uuid:run_id>/cancel", api.cancel, name="api-cancel"),
    path("api/runs/<uuid:run_id>/retry", api.retry, name="api-retry"),
    path("api/reviews/<uuid:review_id>/decision", api.decision, name="api-decision"),
]
