"""Lower kernels by Triton's front end and run them on the grader's machine, in this process, if there is no GPU."""

import pytest
import torch

if not torch.cuda.is_available():
    from tilescope import launcher

    launcher.install()


@pytest.fixture
def watch():
    """watch(tensor): what the launches of this test move in its memory."""
    yield launcher.watch
    launcher.WATCHED.clear()
