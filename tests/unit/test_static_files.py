import pytest
from django.templatetags.static import static

from dashboard.conf import ROOT
from tests.plotly_version import PACKAGED, version_of


@pytest.mark.parametrize("name", ["css/tokens.css", "vendor/plotly/plotly-basic.min.js"])
def test_a_static_file_comes_whole_and_may_be_kept_for_ever(client, name):
    response = client.get(static(name))
    assert response.status_code == 200 and not response.streaming
    assert int(response["content-length"]) == len(response.content) > 0
    assert "max-age=31536000" in response["cache-control"]


def test_a_part_of_a_static_file_can_be_asked_for(client):
    response = client.get(static("css/tokens.css"), HTTP_RANGE="bytes=0-9")
    assert response.status_code == 206 and len(response.content) == 10


def test_the_pages_draw_with_the_plotly_that_figures_are_checked_by():
    assert version_of(ROOT / "static/vendor/plotly/plotly-basic.min.js") == version_of(PACKAGED), "`make plotly` fetches it"
