"""List the cases on which the kernels are tested and timed. Each odd case gives a reason.

The lengths of the full grids are those that FlashAttention's and FlashInfer's own tests use.
"""

import itertools
from dataclasses import dataclass, replace

import numpy as np

from kernels.flash_attention.cost import Decode, Shape
from kernels.tensors import DTYPES


@dataclass(frozen=True)
class Case:
    """One forward (and backward) call. `layout` is the order of axes in memory, or "gaps" for room between elements."""

    batch: int
    q_heads: int
    kv_heads: int
    length: int
    keys: int
    head_dim: int
    dtype: str = "bf16"
    causal: bool = False
    window: tuple | None = None
    softcap: float = 0.0
    scale: float | None = None
    layout: str = "heads first"
    why: str = ""

    @property
    def name(self) -> str:
        marks = ["causal"] * self.causal
        marks += [f"window {self.window}"] * (self.window is not None) + [f"cap {self.softcap:g}"] * (
            self.softcap > 0
        )
        marks += [self.layout] * (self.layout != "heads first")
        heads = f"{self.batch} x {self.q_heads}/{self.kv_heads}"
        return " ".join([heads, f"{self.length} x {self.keys} d {self.head_dim} {self.dtype}", *marks])

    @property
    def options(self) -> dict:
        return dict(causal=self.causal, window=self.window, softcap=self.softcap, scale=self.scale)

    @property
    def shape(self) -> Shape:
        left, right = self.window or (None, None)
        return Shape(
            self.length,
            self.keys,
            self.head_dim,
            self.q_heads,
            self.kv_heads,
            self.batch,
            DTYPES[self.dtype].itemsize,
            left,
            0 if self.causal else right,
        )


def operands(case: Case, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return q, k, v in the case's dtype. With a cap, scores are large enough to be capped."""
    rng = np.random.default_rng(seed)
    sizes = [(case.q_heads, case.length), (case.kv_heads, case.keys), (case.kv_heads, case.keys)]
    drawn = [rng.standard_normal((case.batch, *size, case.head_dim)) for size in sizes]
    if case.softcap:
        drawn[0] *= case.softcap / 4
    return tuple(x.astype(DTYPES[case.dtype]) for x in drawn)


SMALL = (
    Case(1, 2, 1, 70, 130, 64, "fp16"),
    Case(2, 4, 2, 50, 200, 96, "fp16", causal=True, why="head dim is no power of two; a short query chunk after a long cache"),
    Case(1, 2, 2, 130, 130, 64, causal=True, layout="tokens first", why="tensors as a projection leaves them"),
    Case(1, 1, 1, 100, 40, 32, causal=True, why="more queries than keys: the first 60 rows see nothing"),
    Case(1, 1, 1, 200, 200, 64, window=(20, 0), why="whole key tiles lie left of the window"),
    Case(1, 1, 1, 150, 180, 64, "fp16", window=(30, 10), softcap=5.0, why="window on both sides, with a cap"),
    Case(1, 2, 1, 90, 300, 64, window=(0, 0), why="each query sees one key"),
    Case(1, 1, 1, 5, 300, 128, softcap=2.0),
    Case(1, 1, 1, 65, 129, 128, "fp32", causal=True, why="fp32 operands"),
    Case(1, 4, 1, 33, 70, 64, "fp16", layout="gaps", why="no axis is dense"),
    Case(1, 1, 1, 1, 1, 16, why="one key: the weight is one"),
    Case(1, 1, 1, 40, 64, 64, "fp16", scale=4.0, causal=True, why="a peaked softmax: exp of raw scores overflows fp16"),
    Case(1, 2, 1, 113, 203, 40, causal=True, why="FlashAttention's lengths; 40 columns in tiles of 64"),
    Case(1, 1, 1, 108, 256, 32, "fp16", window=(64, 0)),
    Case(1, 4, 4, 17, 54, 256, "fp16", causal=True, softcap=30.0, why="FlashInfer's lengths and cap; the largest head dim"),
    Case(1, 1, 1, 239, 1, 64, causal=True, why="one key, seen by the last of 239 queries alone"),
)  # fmt: skip

LENGTHS = (
    (1, 1),
    (64, 128),
    (128, 192),
    (256, 256),
    (239, 1),
    (799, 3),
    (113, 203),
    (113, 128),
    (128, 217),
    (113, 211),
    (108, 256),
    (256, 512),
    (384, 256),
    (640, 128),
    (512, 256),
    (1024, 1024),
    (1023, 1024),
    (1024, 1023),
)
PREFILL_LENGTHS = tuple(itertools.product((37, 17, 127, 577), (54, 97, 512, 2048)))
MASKS = (
    dict(),
    dict(causal=True),
    dict(window=(64, 0)),
    dict(window=(100, 37)),
    dict(causal=True, softcap=15.0),
)


def grid():
    """List every length of both tables, every mask, grouped and not, on the head dims that models use."""
    heads = itertools.cycle(((6, 6), (6, 2), (6, 1)))
    for d, (length, keys), mask in itertools.product((64, 96, 128, 192, 256), LENGTHS, MASKS):
        yield Case(2, *next(heads), length, keys, d, **mask)
    for d, (length, keys) in itertools.product(
        (32, 40, 80, 160, 224), ((113, 203), (256, 512), (1023, 1024))
    ):
        for mask in MASKS[1:]:
            yield Case(1, *next(heads), length, keys, d, "fp16", **mask)
    dims = itertools.cycle((64, 128, 256, 128))  # four, against three masks
    for (length, keys), mask in itertools.product(
        PREFILL_LENGTHS, (*MASKS[:2], dict(causal=True, softcap=30.0))
    ):
        yield Case(2, 32, 4, length, keys, next(dims), "fp16", layout="tokens first", **mask)
    for d in (64, 128):
        yield Case(1, 2, 2, 4096, 4096, d, causal=True, why="many tiles: sums of 4096 terms")
        yield Case(1, 2, 1, 4224, 4224, d, why="33 key tiles of 128")
        for mask in MASKS:
            yield Case(1, 2, 1, 2048, 2048, d, **mask)


@dataclass(frozen=True)
class DecodeCase:
    batch: int
    q_heads: int
    kv_heads: int
    keys: int
    head_dim: int
    dtype: str = "bf16"
    cache: str = "same"  # or fp8, int8
    page_size: int = 0
    lens: tuple[int, ...] = ()  # number of keys of each sequence, or () for all
    window: int | None = None
    softcap: float = 0.0
    splits: int | None = None
    scales: str = "token"  # one for each key of a head, or one a head
    why: str = ""

    @property
    def name(self) -> str:
        marks = [f"pages of {self.page_size}"] * (self.page_size > 0) + [self.cache] * (self.cache != "same")
        marks += [f"window {self.window}"] * (self.window is not None) + [f"cap {self.softcap:g}"] * (
            self.softcap > 0
        )
        marks += [f"{self.splits} splits"] * (self.splits is not None)
        heads = f"{self.batch} x {self.q_heads}/{self.kv_heads}"
        return " ".join([heads, f"keys {self.keys} d {self.head_dim} {self.dtype}", *marks])

    @property
    def options(self) -> dict:
        return dict(window=self.window, softcap=self.softcap)

    @property
    def cost(self) -> Decode:
        narrow = self.cache != "same"
        return Decode(
            self.batch,
            self.keys,
            self.q_heads,
            self.kv_heads,
            self.head_dim,
            1 if narrow else 2,
            scale_bytes=4 if narrow and self.scales == "token" else 0,
            page_size=self.page_size,
        )


DECODE_SMALL = (
    DecodeCase(2, 8, 2, 300, 64, "fp16", lens=(300, 17)),
    DecodeCase(1, 4, 4, 130, 128, splits=1, why="one split writes the result itself"),
    DecodeCase(3, 6, 1, 200, 96, splits=5, lens=(200, 0, 64), why="an empty cache; splits that get no key"),
    DecodeCase(2, 4, 2, 200, 64, "fp16", window=40, softcap=4.0, splits=3, lens=(200, 150)),
    DecodeCase(2, 8, 2, 77, 64, page_size=16, lens=(77, 33), why="the last page is part full"),
    DecodeCase(2, 4, 1, 50, 64, "fp16", page_size=1, splits=2, why="a page for every key"),
    DecodeCase(1, 4, 2, 90, 64, page_size=5, cache="fp8", lens=(88,), why="a page size that divides no tile"),
    DecodeCase(2, 4, 2, 150, 64, "fp16", cache="int8", splits=3, lens=(150, 90)),
    DecodeCase(1, 2, 1, 100, 128, cache="fp8", scales="head", splits=2),
    DecodeCase(2, 4, 2, 60, 64, cache="int8", scales="head", page_size=8, lens=(60, 7)),
    DecodeCase(1, 32, 1, 70, 64, "fp16", why="32 query heads for one key head"),
    DecodeCase(
        2, 4, 4, 54, 256, "fp16", page_size=5, softcap=30.0, why="FlashInfer's shortest; the largest head dim"
    ),
    DecodeCase(1, 16, 4, 97, 128, cache="fp8", page_size=16),
)


def decode_grid():
    """List FlashInfer's lengths, page sizes, heads, head dims and cap."""
    more = itertools.cycle(
        zip((12, 17, 12, 17, 12, 17, 12), (0, 30, 30, 0, 0, 30, 30), strict=True)
    )  # seven, so that it meets every size
    for keys, page, q_heads, d, cache in itertools.product(
        (54, 97, 512, 2048), (0, 1, 5, 8, 16), (4, 16, 32), (64, 128, 256), ("same", "fp8")
    ):
        batch, softcap = next(more)
        yield DecodeCase(batch, q_heads, 4, keys, d, "fp16", cache, page, softcap=float(softcap))
    for cache, window in itertools.product(("same", "int8"), (None, 500)):
        yield DecodeCase(2, 32, 8, 16384, 128, "bf16", cache, 16, window=window, softcap=30.0)


def decode_operands(case: DecodeCase, seed: int = 0) -> dict:
    """Return the arguments of `decode` as arrays. Pages are in random order, and past a sequence's length there are NaNs."""
    rng = np.random.default_rng(seed)
    dtype = DTYPES[case.dtype]
    lens = np.array(case.lens or (case.keys,) * case.batch, np.int32)
    drawn = {"q": rng.standard_normal((case.batch, case.q_heads, case.head_dim)).astype(dtype), "lens": lens}
    for name in "kv":
        x = rng.standard_normal((case.batch, case.kv_heads, case.keys, case.head_dim))
        unused = np.arange(case.keys)[None, None, :] >= lens[:, None, None] + np.zeros(
            (1, case.kv_heads, 1), int
        )
        drawn[name] = x.astype(dtype)
        if case.cache != "same":
            drawn[name], drawn[f"{name}_scale"] = quantize(x, case)
            if case.scales == "token":
                drawn[f"{name}_scale"][unused] = np.nan
        drawn[name][unused] = rubbish(drawn[name].dtype)
    if case.page_size:
        names = [
            name
            for name in ("k", "v", "k_scale", "v_scale")
            if name in drawn and case.keys in drawn[name].shape
        ]
        pages = -(-case.keys // case.page_size)
        drawn["table"] = (
            rng.permutation(case.batch * pages + 3)[: case.batch * pages].astype(np.int32).reshape(-1, pages)
        )
        for name in names:
            drawn[name] = into_pages(drawn[name], drawn["table"], case.page_size)
    return drawn


def rubbish(dtype) -> float:
    """Return what a cache may hold where nothing was written yet. int8 has no NaN."""
    return 127 if dtype == np.int8 else np.nan


def quantize(x: np.ndarray, case: DecodeCase) -> tuple[np.ndarray, np.ndarray]:
    """Narrow numbers and their scales, (batch, kv heads, keys) or (1, kv heads, 1)."""
    axes = 3 if case.scales == "token" else (0, 2, 3)
    scale = np.abs(x).max(axis=axes, keepdims=True) / (448 if case.cache == "fp8" else 127)
    codes = np.rint(x / scale).astype(np.int8) if case.cache == "int8" else (x / scale).astype(DTYPES["fp8"])
    return codes, scale[..., 0].astype(np.float32)


def into_pages(x: np.ndarray, table: np.ndarray, page_size: int) -> np.ndarray:
    """(batch, kv heads, keys, ...) -> (pages, kv heads, page size, ...), each page where the table says."""
    batch, kv_heads, keys, *rest = x.shape
    cut = np.full((batch, kv_heads, table.shape[1] * page_size, *rest), rubbish(x.dtype), x.dtype)
    cut[:, :, :keys] = x
    cut = cut.reshape(batch, kv_heads, table.shape[1], page_size, *rest)
    pages = np.full((table.size + 3, kv_heads, page_size, *rest), rubbish(x.dtype), x.dtype)
    pages[table] = np.swapaxes(cut, 1, 2)
    return pages


TIMED = (
    Case(4, 32, 32, 4096, 4096, 128),
    Case(4, 32, 32, 4096, 4096, 128, causal=True),
    Case(4, 32, 8, 4096, 4096, 128, causal=True),
    Case(1, 32, 32, 16384, 16384, 128, causal=True),
    Case(16, 16, 16, 1024, 1024, 64),
    Case(16, 16, 16, 1024, 1024, 64, causal=True),
    Case(4, 32, 32, 4096, 4096, 64),
    Case(4, 16, 16, 4096, 4096, 256, causal=True),
    Case(4, 32, 8, 8192, 8192, 128, window=(1024, 0)),
)
TIMED_BACKWARD = tuple(TIMED[i] for i in (0, 1, 2, 5, 6))
TIMED_DECODE = (
    DecodeCase(32, 32, 8, 4096, 128),
    DecodeCase(1, 32, 8, 32768, 128),
    DecodeCase(4, 32, 8, 8192, 128),
    DecodeCase(64, 32, 8, 1024, 128),
)
TIMED_DECODE += tuple(replace(case, page_size=16) for case in TIMED_DECODE[:2])
TIMED_DECODE += tuple(replace(case, cache="fp8", scales="head") for case in TIMED_DECODE[:2])
