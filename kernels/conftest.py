"""Lower kernels by Triton's front end and run them on the grader's machine, in this process, if there is no GPU."""

import pytest
import torch

if not torch.cuda.is_available():
    from tilescope import launcher

    launcher.install()


@pytest.fixture
def watch():
    """Return the bytes that this test's launches move in a tensor's memory, watch(tensor)."""
    yield launcher.watch
    launcher.WATCHED.clear()
