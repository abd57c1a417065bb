"""Load a Qwen3-MoE checkpoint as its folder comes: config.json, and safetensors in one file or in many.

It needs no package, because a safetensors file is a length, a table in JSON and the tensors' bytes, which are mapped
and read on demand. Experts become 4-bit codes as they are read, round to nearest in groups, so that the whole of
Qwen3-30B-A3B needs some 20 GB and never its whole 61 GB.
"""

import json
from collections.abc import Iterator
from math import prod
from pathlib import Path

import torch

from kernels.next_bottleneck.shapes import Shape
from kernels.next_bottleneck.weights import Codes, Layer, Weights, quantize
from kernels.require import must

DTYPES = {"BF16": torch.bfloat16, "F16": torch.float16, "F32": torch.float32}
MOST_TABLE = 100 * 2**20  # bytes, as the format's own readers allow
KEYS = {
    "hidden": "hidden_size",
    "layers": "num_hidden_layers",
    "q_heads": "num_attention_heads",
    "kv_heads": "num_key_value_heads",
    "head_dim": "head_dim",
    "experts": "num_experts",
    "top_k": "num_experts_per_tok",
    "intermediate": "moe_intermediate_size",
    "vocabulary": "vocab_size",
    "theta": "rope_theta",
    "eps": "rms_norm_eps",
    "tied": "tie_word_embeddings",
}
# The step computes only these, and a checkpoint may ask otherwise: key -> the values that it may have.
ONLY = {
    "norm_topk_prob": (True,),
    "decoder_sparse_step": (1, None),
    "mlp_only_layers": ([], None),
    "attention_bias": (False, None),
    "rope_scaling": (None,),
    "use_sliding_window": (False, None),
    "hidden_act": ("silu", None),
}


class Tensors:
    """The tensors of a folder's safetensors files, by name. Each is read on request."""

    def __init__(self, folder: Path):
        self.place: dict[str, tuple[Path, torch.dtype, tuple[int, ...], int]] = {}
        self.maps: dict[Path, torch.Tensor] = {}
        files = sorted(folder.glob("*.safetensors"))
        must(len(files) > 0, "folder", "one with *.safetensors", folder, "download the checkpoint's files")
        for path in files:
            self._table(path)

    def _table(self, path: Path) -> None:
        size = path.stat().st_size
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            must(
                8 + length <= size and length <= MOST_TABLE,
                path.name,
                "a whole safetensors file",
                f"a table of {length} bytes in {size}",
                "download it again",
            )
            table = json.loads(file.read(length))
        for name, one in table.items():
            if name == "__metadata__":
                continue
            known = one["dtype"] in DTYPES
            must(known, name, f"one of {', '.join(DTYPES)}", one["dtype"], "take the unquantized checkpoint")
            dtype, shape, (first, last) = DTYPES[one["dtype"]], tuple(one["shape"]), one["data_offsets"]
            whole = last - first == prod(shape) * dtype.itemsize and 8 + length + last <= size
            must(
                whole, name, f"all of its {shape}", f"bytes {first} to {last}", f"download {path.name} again"
            )
            self.place[name] = path, dtype, shape, 8 + length + first

    def __getitem__(self, name: str) -> torch.Tensor:
        must(name in self.place, "checkpoint", f"one with {name}", "none", "is it a Qwen3-MoE model?")
        path, dtype, shape, at = self.place[name]
        if path not in self.maps:
            self.maps[path] = torch.from_file(str(path), size=path.stat().st_size, dtype=torch.uint8)
        held = self.maps[path][
            at : at + prod(shape) * dtype.itemsize
        ].clone()  # the clone is aligned to 16 bytes
        return held.view(dtype).view(shape)


def shape_of(folder: Path, *, page: int = 64, group: int = 128) -> Shape:
    """Return the shape that config.json names. Refuse a model that the step does not compute."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    for key, allowed in ONLY.items():
        value = config.get(key)
        must(value in allowed, key, f"one of {allowed}", repr(value), "the step computes no other model")
    missing = [key for key in KEYS.values() if key not in config]
    must(not missing, "config.json", "one of a Qwen3-MoE model", f"none of {', '.join(missing)}", "see KEYS")
    return Shape(**{name: config[key] for name, key in KEYS.items()}, page=page, group=group)


def load(folder: Path, *, device="cpu", group: int = 128, page: int = 64) -> Weights:
    """Return the folder's weights on the device, experts in 4 bits."""
    folder = Path(folder)
    shape = shape_of(folder, page=page, group=group)
    tensors = Tensors(folder)
    embedding = tensors["model.embed_tokens.weight"].to(device)
    head = embedding if shape.tied else tensors["lm_head.weight"].to(device)
    layers = tuple(_layer(tensors, i, shape, device) for i in range(shape.layers))
    return Weights(shape, embedding, layers, tensors["model.norm.weight"].to(device), head)


def _layer(tensors: Tensors, i: int, shape: Shape, device) -> Layer:
    def of(name: str) -> torch.Tensor:
        return tensors[f"model.layers.{i}.{name}.weight"].to(device)

    def stacked(names: tuple[str, ...]) -> Codes:
        """All experts, quantized one at a time."""
        parts = list(_coded(of, names, shape))
        return Codes(torch.cat([p.packed for p in parts]), torch.cat([p.scales for p in parts]))

    return Layer(
        input_norm=of("input_layernorm"),
        qkv=torch.cat([of(f"self_attn.{name}_proj") for name in "qkv"]),
        q_norm=of("self_attn.q_norm"),
        k_norm=of("self_attn.k_norm"),
        out=of("self_attn.o_proj"),
        post_norm=of("post_attention_layernorm"),
        router=of("mlp.gate"),
        gate_up=stacked(("gate_proj", "up_proj")),
        down=stacked(("down_proj",)),
    )


def _coded(of, names: tuple[str, ...], shape: Shape) -> Iterator[Codes]:
    for e in range(shape.experts):
        whole = torch.cat([of(f"mlp.experts.{e}.{name}") for name in names])
        yield quantize(whole[None], shape.group)
