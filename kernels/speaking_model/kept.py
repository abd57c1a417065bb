"""Load the results of training: the speaking model's weights as the decode step takes them, its tokenizer and its
story."""

import json
from pathlib import Path

import numpy as np

from kernels.speaking_model.tokens import Tokenizer

KEPT = Path(__file__).parent / "kept"


def about(folder: Path = KEPT) -> dict:
    """Return when and how it was trained, and every source of its text with the licence."""
    return json.loads((folder / "about.json").read_text(encoding="utf-8"))


def tokenizer(folder: Path = KEPT) -> Tokenizer:
    return Tokenizer(json.loads((folder / "merges.json").read_text(encoding="utf-8")))


def weights(folder: Path = KEPT):
    """Return Weights in fp16 with 4-bit experts. torch is loaded here."""
    import torch

    from kernels.next_bottleneck.shapes import SPEAKING
    from kernels.next_bottleneck.weights import Codes, Layer, Weights

    with np.load(folder / "weights.npz") as found:
        state = {name: torch.from_numpy(found[name]) for name in found.files}

    def layer(i: int) -> Layer:
        at = f"layers.{i}."
        return Layer(
            input_norm=state[at + "input_layernorm.weight"],
            qkv=torch.cat([state[f"{at}self_attn.{name}_proj.weight"] for name in "qkv"]),
            q_norm=state[at + "self_attn.q_norm.weight"],
            k_norm=state[at + "self_attn.k_norm.weight"],
            out=state[at + "self_attn.o_proj.weight"],
            post_norm=state[at + "post_attention_layernorm.weight"],
            router=state[at + "mlp.gate.weight"],
            gate_up=Codes(state[at + "mlp.gate_up.codes"], state[at + "mlp.gate_up.scales"]),
            down=Codes(state[at + "mlp.down.codes"], state[at + "mlp.down.scales"]),
        )

    embedding = state["embed_tokens.weight"]
    layers = tuple(layer(i) for i in range(SPEAKING.layers))
    return Weights(SPEAKING, embedding, layers, state["norm.weight"], embedding)
