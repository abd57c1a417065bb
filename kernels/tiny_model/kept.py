"""Load the results of training: the tiny model with its weights, and its routers' choices on unseen text."""

import json
from pathlib import Path

import numpy as np

KEPT = Path(__file__).parent / "kept"


def about() -> dict:
    return json.loads((KEPT / "about.json").read_text(encoding="utf-8"))


def traces() -> dict[str, np.ndarray]:
    """Return, by way of balancing, (blocks, tokens, top_k), the experts that each token chose, best first."""
    with np.load(KEPT / "traces.npz") as found:
        return {way: found[way] for way in found.files}


def model():
    """Return the TinyModel balanced by its auxiliary loss. torch is imported here, because traces need none."""
    import torch

    from kernels.tiny_model.model import TinyModel

    with np.load(KEPT / "weights.npz") as found:
        state = {name: torch.from_numpy(found[name]).float() for name in found.files}
    trained = TinyModel()
    trained.load_state_dict(state)
    return trained.eval()
