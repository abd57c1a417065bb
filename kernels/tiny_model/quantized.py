"""Quantize the tiny model's trained weights in the formats of lesson 02, and measure what that does to what it says.

`python -m kernels.tiny_model.quantized` writes kept/quantized.json. Errors of weights are those of random numbers of the
same shapes, too, because a bell is what every table of errors begins with.
"""

import json
from pathlib import Path

import numpy as np

from kernels.quantization_layouts import reference

KEPT = Path(__file__).parent / "kept"
MATRICES = ("qkv.weight", "out.weight", "moe.gate", "moe.up", "moe.down")
LENGTH = 128  # bytes that the model reads at a time, as in training


def _int4(group: int):
    return lambda w: reference.quantize_int4(w, group)


def _fp8_blocks(w: np.ndarray) -> reference.Scaled:
    """Quantize to E4M3 under one fp32 scale for each 32 of a row, the form of DeepSeek-V3's 128, cut to this model's
    width."""
    blocks = w.reshape(-1, 32)
    return reference.Scaled(
        (q := reference.quantize_fp8(blocks)).numbers.reshape(w.shape),
        q.scales.reshape(len(w), -1),
        32,
    )


WEIGHTS = {
    "int8, a scale per row": reference.quantize_int8,
    "FP8, a scale per 32": _fp8_blocks,
    "int4, groups of 32": _int4(32),
    "4-bit codebook, groups of 32": lambda w: reference.quantize_kbit(w, 4, 32),
    "NVFP4": reference.quantize_nvfp4,
    "MXFP4": reference.quantize_mxfp4,
    "3-bit codebook, groups of 32": lambda w: reference.quantize_kbit(w, 3, 32),
    "2-bit codebook, groups of 32": lambda w: reference.quantize_kbit(w, 2, 32),
}
BOTH = {  # weights and activations alike
    "FP8, a scale per 32": "FP8 W8A8, scales per 32",
    "NVFP4": "NVFP4 W4A4",
    "MXFP4": "MXFP4 W4A4",
}


def kept_values(w: np.ndarray, form: str) -> np.ndarray:
    """Return w (N, K) quantized and back. K is filled up with zeros to whole groups, which every format keeps exactly."""
    k = w.shape[1]
    wide = np.pad(np.asarray(w, np.float64), ((0, 0), (0, -k % 32)))
    return reference.values(WEIGHTS[form](wide))[:, :k]


def matrices() -> dict[str, np.ndarray]:
    """Return the trained linear layers as (N, K), every expert by itself."""
    found = {}
    with np.load(KEPT / "weights.npz") as stored:
        for name in stored.files:
            if name.endswith(MATRICES):
                w = stored[name].astype(np.float64)
                found |= {f"{name}.{e}": one.T for e, one in enumerate(w)} if w.ndim == 3 else {name: w}
    return found


def weight_error(form: str, of: dict[str, np.ndarray]) -> float:
    """Return the root mean square error of all matrices as a share of their root mean square value."""
    missed = sum(((kept_values(w, form) - w) ** 2).sum() for w in of.values())
    return float((missed / sum((w**2).sum() for w in of.values())) ** 0.5)


def bells(seed: int = 0) -> dict[str, np.ndarray]:
    """Return normally distributed matrices of the same shapes and sizes."""
    rng = np.random.default_rng(seed)
    return {name: w.std() * rng.standard_normal(w.shape) for name, w in matrices().items()}


def measured(form: str, both: bool = False) -> dict[str, float]:
    """Return how far the model's next-byte distributions move: divergence in nats a byte, and how often the top byte changes.

    With `both`, the inputs of attention's projections and of the experts' first two matrices are quantized too. The router
    and the inputs of `down` stay wide.
    """
    import torch

    from kernels.tiny_model import kept

    text = np.frombuffer((KEPT / "sample.txt").read_bytes(), np.uint8)
    tokens = torch.from_numpy(text[: len(text) // LENGTH * LENGTH].reshape(-1, LENGTH).astype(np.int64))
    plain, changed = kept.model(), kept.model()
    with torch.no_grad():
        for name, w in changed.named_parameters():
            if name.endswith(MATRICES):
                experts = w.numpy().transpose(0, 2, 1) if w.ndim == 3 else w.numpy()[None]
                now = np.stack([kept_values(one, form) for one in experts])
                w.copy_(torch.from_numpy(now.transpose(0, 2, 1) if w.ndim == 3 else now[0]))
        if both:
            for block in changed.blocks:
                _narrow_inputs(block, form)
        before, after = (model(tokens).log_softmax(-1) for model in (plain, changed))
    moved = (before.exp() * (before - after)).sum(-1)
    top = before.argmax(-1) != after.argmax(-1)
    return {"nats": float(moved.mean()), "changed": float(top.float().mean())}


def _narrow_inputs(block, form: str) -> None:
    """Let the linear layers of a block see quantized inputs, and the router the wide ones."""
    import torch

    def narrow(x):
        rows = x.detach().flatten(0, -2).double().numpy()
        return torch.from_numpy(kept_values(rows, form)).to(x).view_as(x)

    wide = {}

    def enter(module, given):
        wide["x"] = given[0]
        return (narrow(given[0]),)

    for module in (block.attention.qkv, block.attention.out):
        module.register_forward_pre_hook(lambda module, given: (narrow(given[0]),))
    block.moe.register_forward_pre_hook(enter)
    block.moe.router.register_forward_pre_hook(lambda module, given: (wide["x"].flatten(0, 1),))


def rows() -> list[dict]:
    """Return the recorded rows."""
    return json.loads((KEPT / "quantized.json").read_text(encoding="utf-8"))["rows"]


def main() -> None:
    real, bell, found = matrices(), bells(), []
    for form in WEIGHTS:
        errors = {"error": weight_error(form, real), "bell": weight_error(form, bell)}
        found.append({"form": form, "inputs": 16, **errors, **measured(form)})
    for form, name in BOTH.items():
        found.append({"form": name, "inputs": 8 if "W8" in name else 4, **measured(form, both=True)})
    (KEPT / "quantized.json").write_text(json.dumps({"rows": found}, indent=1) + "\n", encoding="utf-8")
    for row in found:
        print(row)


if __name__ == "__main__":
    main()
