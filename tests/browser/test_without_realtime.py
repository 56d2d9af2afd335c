"""Where the system refuses the real-time class, runs go on and their pages say so."""

import os
import re
import shutil

import pytest
from playwright.sync_api import expect

from tests.browser.first_light import NAME, PASSWORD, launch, log_in, wait_until_complete
from tests.stack.stack import running_stack

pytestmark = [pytest.mark.browser, pytest.mark.stack]


def test_the_page_says_that_the_realtime_class_was_not_granted(page, picture):
    without_the_right: tuple[str, ...] = ()
    if os.geteuid() == 0:
        if not shutil.which("setpriv"):
            pytest.skip("root has the right to the real-time class, and setpriv, which takes it away, is not installed")
        without_the_right = ("setpriv", "--bounding-set", "-sys_nice", "--inh-caps", "-sys_nice")
    with running_stack(under=without_the_right) as stack:
        stack.create_user(NAME, PASSWORD)
        log_in(page, stack)
        run = launch(page, stack, "pipeline-1f1b", steps="2")
        wait_until_complete(page)
        assert stack.run(run)["state"] == "finished"
        assert stack.run(run)["realtime"] == 0
        expect(page.locator('[data-part="realtime"]')).to_contain_text(re.compile("Real-time class not granted"))
        picture(page, "refused")
