"""One good call of the tool for exports, on the demo's data."""

from typing import Final

from tests.conformance.samples import ToolSample

SAMPLES: Final = {
    "export_payments": ToolSample(
        words=("export the payments of last month",),
        arguments={"period": "last month"},
        same=(
            {"period": "the LAST month.", "kind": "payment", "format": " .CSV"},
            {"period": "previous month", "kind": "Payments"},
        ),
        other=(
            {"period": "last month", "currency": "EUR"},
            {"period": "last month", "kind": "refunds"},
            {"period": "this month"},
        ),
    ),
}
