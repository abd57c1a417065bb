from pathlib import Path

import pytest

from grader.box import warm


@pytest.fixture(scope="session")
def gemm_source() -> str:
    return (Path(__file__).parents[2] / "tests/answers/tiled_gemm.py").read_text()


@pytest.fixture(scope="session", autouse=True)
def warm_jails():
    yield
    warm.stop_all()
