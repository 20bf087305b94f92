"""Addresses and questions that no row can hold are refused in words."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from tests.desk.conftest import Enter


@pytest.mark.parametrize(
    "address",
    ["/documents/%00/", "/documents/PAY%00/pdf/", "/tickets/%00/", "/exports/a%00b/", "/%00"],
)
def test_nothing_is_found_at_an_address_with_a_nul(enter: Enter, tom: User, address: str) -> None:
    answer = enter(tom).get(address)
    assert answer.status_code == 404
    assert "Traceback" not in answer.content.decode()


@pytest.mark.parametrize("question", ["state=%00", "q=%00", "%00=a", "amount_from=1%00"])
def test_a_question_with_a_nul_is_refused(admin_client: object, question: str) -> None:
    answer = admin_client.get(f"/admin/reviews/review/?{question}")  # type: ignore[attr-defined]
    assert answer.status_code == 400
