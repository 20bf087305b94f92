"""One good call of the tool for exports, on the demo's data, and its other outcomes."""

from dataclasses import replace
from typing import Final
from uuid import uuid4

from exports.formats import FORMATS
from exports.formats.csv import CsvFormat
from exports.tools import export_payments
from tests.conformance.breaking import rows_refused
from tests.conformance.samples import Forced, ToolSample
from tests.conformance.scenes import Scene

_GOOD: Final = {"period": "last month"}


def _started_before(scene: Scene) -> None:
    export_payments(replace(scene.context(), call_id=uuid4()), **_GOOD)


def _small_format(scene: Scene) -> None:
    """Register a format that holds a few rows only, as a page might; the product has none yet."""
    page = CsvFormat("page", "Page", byte_order_mark=False, row_limit=3)
    scene.patch.setattr("exports.services.FORMATS", {**FORMATS, "page": page})


SAMPLES: Final = {
    "export_payments": ToolSample(
        words=("export the payments of last month",),
        arguments=_GOOD,
        same=(
            {"period": "the LAST month.", "kind": "payment", "format": " .CSV"},
            {"period": "previous month", "kind": "Payments"},
        ),
        other=(
            {"period": "last month", "currency": "EUR"},
            {"period": "last month", "kind": "refunds"},
            {"period": "this month"},
        ),
        outcomes={
            "completed": {
                "as-asked": Forced(code="export.started"),
                "on-its-way": Forced(code="export.started", before=_started_before),
                "nothing-to-export": Forced(
                    code="export.empty", arguments={"period": "January 2001"}
                ),
            },
            "transient": {
                "period-unclear": Forced(
                    code="export.period_unclear", arguments={"period": "a month " * 30}
                ),
                "unknown-kind": Forced(code="export.invalid", arguments={"kind": "customers"}),
                "unknown-format": Forced(code="export.invalid", arguments={"format": "docx"}),
                "too-many-rows": Forced(
                    code="export.too_large", arguments={"format": "page"}, before=_small_format
                ),
                "unknown-currency": Forced(code="export.invalid", arguments={"currency": "euro"}),
            },
            "fatal": {
                "database-refuses": Forced(
                    code="tool.failed", before=rows_refused("exports_export")
                )
            },
        },
    ),
}
