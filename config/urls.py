"""The address table: the admin, everything else in the desk, and who answers errors."""

from django.contrib import admin
from django.urls import include, path

admin.site.site_header = "Countersign administration"
admin.site.site_title = "Countersign"
admin.site.index_title = "Records and reviews"

urlpatterns = [
    path("admin/", admin.site.urls),
    path("hooks/", include("payments.processor.urls")),
    path("", include("desk.urls")),
]

handler400 = "desk.views.errors.bad_request"
handler403 = "desk.views.errors.permission_denied"
handler404 = "desk.views.errors.not_found"
handler500 = "desk.views.errors.failed"
