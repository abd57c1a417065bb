"""What the sources state beyond the rows of figures.psv."""

import pytest

from widgets.tests.figures.roofline import MORE


@pytest.mark.parametrize("check", MORE, ids=lambda check: check.__name__)
def test_figure(check):
    check()
