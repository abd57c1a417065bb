"""Allocate GPU memory for one answer: strided tensors between red zones, outputs filled at random, inputs in rotating
copies."""

from functools import cache

import torch

RED_ZONE = 4096
POISON = 0xFF
TORCH = {
    "bool": torch.bool,
    "bf16": torch.bfloat16,
    "fp8e4nv": torch.float8_e4m3fn,
    "fp8e5": torch.float8_e5m2,
    "fp16": torch.float16,
    "fp32": torch.float32,
    "fp64": torch.float64,
    "i8": torch.int8,
    "i16": torch.int16,
    "i32": torch.int32,
    "i64": torch.int64,
    "u8": torch.uint8,
    "u16": getattr(torch, "uint16", torch.int16),
    "u32": getattr(torch, "uint32", torch.int32),
    "u64": getattr(torch, "uint64", torch.int64),
}


WHOLE = {
    1: torch.int8,
    2: torch.int16,
    4: torch.int32,
    8: torch.int64,
}  # by bytes, the type that random bits are written as


@cache
def chance(device: torch.device) -> torch.Generator:
    """Return a generator seeded by the system, so that no answer knows the content of memory before its own writes."""
    generator = torch.Generator(device)
    generator.seed()
    return generator


class Guarded:
    """One tensor's storage with a poisoned red zone on each side."""

    def __init__(self, nbytes: int, content: bytes | torch.Tensor | None = None):
        self.nbytes = nbytes
        self.raw = torch.full((nbytes + 2 * RED_ZONE,), POISON, dtype=torch.uint8, device="cuda")
        if content is not None and nbytes:  # an axis of none has no bytes, and torch takes no empty buffer
            there = isinstance(content, torch.Tensor)
            self.bytes.copy_(content if there else torch.frombuffer(bytearray(content), dtype=torch.uint8))

    @property
    def bytes(self) -> torch.Tensor:
        return self.raw[RED_ZONE : RED_ZONE + self.nbytes]

    def intact(self) -> bool:
        return bool(
            (self.raw[:RED_ZONE] == POISON).all() and (self.raw[RED_ZONE + self.nbytes :] == POISON).all()
        )

    def view(self, dtype: str, shape, strides) -> torch.Tensor:
        return torch.as_strided(self.bytes.view(TORCH[dtype]), tuple(shape), tuple(strides))


class InputSet:
    """All tensors of one call, as views and as flat storages (the pointers a kernel takes)."""

    def __init__(self, tensors: list[dict], scratch: dict, contents: dict):
        self.guarded, self.views, self.before = {}, {}, {}
        self.scratch, self.outputs = scratch, [t["name"] for t in tensors if t["role"] == "out"]
        for t in tensors:
            content = contents.get(t["name"])
            nbytes = len(content) if content is not None else t["storage_bytes"]
            self.guarded[t["name"]] = Guarded(nbytes, content)
            self.views[t["name"]] = self.guarded[t["name"]].view(t["dtype"], t["shape"], t["strides"])
            if t["role"] == "inout":
                self.before[t["name"]] = self.guarded[t["name"]].bytes.clone()
        for name, s in scratch.items():
            self.views[name] = torch.empty(tuple(s["shape"]), dtype=TORCH[s["dtype"]], device="cuda")
        self.fill_scratch()
        self.fill_outputs()

    def fill_outputs(self) -> None:
        """Fill every output with fresh content, so that an unwritten element is never the same twice. Gaps between
        rows stay as they are. Partly written outputs get their input back."""
        for name, before in self.before.items():
            self.guarded[name].bytes.copy_(before)
        for view in map(self.views.get, self.outputs):
            anything = torch.randint(
                0, 2 if view.dtype == torch.bool else 256, (view.numel() * view.itemsize,),
                generator=chance(view.device), dtype=torch.uint8, device=view.device,
            )  # fmt: skip
            whole = WHOLE[view.itemsize]
            view.view(whole).copy_(anything.view(whole).reshape(view.shape))

    def fill_scratch(self) -> None:
        for name, s in self.scratch.items():
            self.views[name].fill_(float(s["fill"]))

    @property
    def nbytes(self) -> int:
        return sum(g.nbytes for g in self.guarded.values())
