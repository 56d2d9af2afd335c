import logging

import pytest

from dashboard.discretion import HideTokens

TOKEN = "abcDEF_-0123456789wxyz"


@pytest.mark.parametrize("before", ["/s/", "/welcome/", "/ws/s/"])
def test_a_token_in_an_address_is_not_logged(before):
    record = logging.LogRecord("django.request", logging.WARNING, "", 0, "Not Found: %s", (f"{before}{TOKEN}/",), None)
    HideTokens().filter(record)
    assert record.getMessage() == f"Not Found: {before}…/"


def test_other_lines_stay_as_they_are():
    record = logging.LogRecord("django.request", logging.WARNING, "", 0, "Not Found: %s", ("/runs/abc/",), None)
    HideTokens().filter(record)
    assert record.getMessage() == "Not Found: /runs/abc/"


@pytest.mark.django_db
def test_the_server_logs_no_token(client, caplog):
    caplog.handler.addFilter(HideTokens())
    assert client.get(f"/s/{TOKEN}/").status_code == 404
    assert "/s/…" in caplog.text and TOKEN not in caplog.text
