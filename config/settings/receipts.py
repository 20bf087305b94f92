"""Who issues the customers' documents, as it stands on them."""

from typing import TypedDict

from config import env


class Seller(TypedDict):
    """Name, lines of the address and tax number; all empty where nobody said."""

    name: str
    address: list[str]
    tax_id: str


def _seller() -> Seller:
    name, tax_id = env.text("RECEIPT_SELLER_NAME", ""), env.text("RECEIPT_SELLER_TAX_ID", "")
    address = env.text("RECEIPT_SELLER_ADDRESS", "")
    if not name and (address or tax_id):
        raise env.SettingRefused(
            "RECEIPT_SELLER_ADDRESS and RECEIPT_SELLER_TAX_ID need RECEIPT_SELLER_NAME."
        )
    lines = [line.strip() for line in address.split("|")] if address else []
    if not all(lines) or len(lines) > 6 or max(map(len, (name, tax_id, *lines))) > 120:
        raise env.SettingRefused(
            "RECEIPT_SELLER_ADDRESS takes up to six lines with | between them, none empty, and "
            "no line, name or tax number of a receipt may be longer than 120 letters."
        )
    return {"name": name, "address": lines, "tax_id": tax_id}


RECEIPT_SELLER = _seller()
