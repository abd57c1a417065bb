"""Where there is no GPU, kernels run in Triton's interpreter: that must be said before triton is imported."""

import os

import pytest
import torch

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"


def pytest_collection_modifyitems(items):
    if torch.cuda.is_available():
        return
    skip = pytest.mark.skip(reason="needs an NVIDIA GPU, and there is none here")
    for item in items:
        if item.get_closest_marker("gpu"):
            item.add_marker(skip)
