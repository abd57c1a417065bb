from pathlib import Path

import pytest

from grader import jailer


@pytest.fixture(scope="session")
def gemm_source() -> str:
    return (Path(__file__).parents[2] / "tests/answers/tiled_gemm.py").read_text()


@pytest.fixture(scope="session", autouse=True)
def warm_jails():
    yield
    jailer.stop_all()
