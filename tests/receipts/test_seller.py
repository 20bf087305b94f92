"""Who sells is read strictly: a receipt with half a seller is worse than one with none."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

from config.env import SettingRefused

SETTINGS = Path(__file__).parents[2] / "config" / "settings" / "receipts.py"


def seller(monkeypatch: pytest.MonkeyPatch, **values: str) -> Any:
    """Return the seller that these variables make."""
    for name in ("NAME", "ADDRESS", "TAX_ID"):
        monkeypatch.setenv(f"RECEIPT_SELLER_{name}", values.get(name, ""))
    return runpy.run_path(str(SETTINGS))["RECEIPT_SELLER"]


def test_a_seller_is_optional_and_an_address_has_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    assert seller(monkeypatch) == {"name": "", "address": [], "tax_id": ""}
    assert seller(monkeypatch, NAME="Nord", ADDRESS="Weg 1 | 20457 Hamburg", TAX_ID="DE 1") == {
        "name": "Nord",
        "address": ["Weg 1", "20457 Hamburg"],
        "tax_id": "DE 1",
    }


@pytest.mark.parametrize(
    "values",
    [
        {"ADDRESS": "Weg 1"},
        {"TAX_ID": "DE 1"},
        {"NAME": "x" * 121},
        {"NAME": "Nord", "ADDRESS": "Weg 1||Hamburg"},
        {"NAME": "Nord", "ADDRESS": "|".join("1234567")},
        {"NAME": "Nord\x07"},
    ],
)
def test_half_a_seller_is_refused(values: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SettingRefused, match="RECEIPT_SELLER_"):
        seller(monkeypatch, **values)
