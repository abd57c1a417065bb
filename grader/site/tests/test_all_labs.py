"""Every lab in the tab: each question red as it comes and green with its answer, and each other cell runs."""

import pytest

from grader.compiler.host import open_here
from grader.places import ROOT
from grader.site import build, times
from grader.site.bundle import questions_of
from grader.site.tests.conftest import tab_on

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(not (ROOT / "solutions").exists(), reason="solutions/, which is not handed out"),
]
