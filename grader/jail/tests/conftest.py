import pytest

from grader.box import warm


@pytest.fixture(scope="session", autouse=True)
def warm_boxes():
    yield
    warm.stop_all()
