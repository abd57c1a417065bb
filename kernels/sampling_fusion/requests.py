"""Check the requests of one batch on the host, and write them into tables that kernels can read."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

# name -> (default, rule in words, does a finite value satisfy it?)
NUMBERS = {
    "temperature": (1.0, "at least 0 (0 is greedy)", lambda x: x >= 0),
    "top_p": (1.0, "above 0 and at most 1 (1 is off)", lambda x: 0 < x <= 1),
    "min_p": (0.0, "at least 0 and below 1 (0 is off)", lambda x: 0 <= x < 1),
    "presence": (0.0, "finite (0 is off)", lambda x: True),
    "frequency": (0.0, "finite (0 is off)", lambda x: True),
    "repetition": (1.0, "above 0 (1 is off)", lambda x: x > 0),
}
WHOLE = {
    "top_k": (0, "from 0 (off) to 2**31 - 1", lambda x: 0 <= x < 2**31),
    "seed": (0, "from 0 to 2**64 - 1", lambda x: 0 <= x < 2**64),
    "position": (0, "from 0 to 2**31 - 1", lambda x: 0 <= x < 2**31),
}


def _column(name: str, value, batch: int, default, rule: str, fits) -> list:
    values = [default if value is None else value] * batch if np.ndim(value) == 0 else list(value)
    if len(values) != batch:
        raise ValueError(f"{name} must be one value or {batch}, got {len(values)}; give one per request")
    for row, x in enumerate(values):
        if isinstance(x, bool) or not math.isfinite(x) or not fits(x):
            raise ValueError(f"{name} must be {rule}, got {x!r} for request {row}; correct that request")
        if isinstance(default, int) and int(x) != x:
            raise ValueError(f"{name} must be a whole number, got {x!r} for request {row}; round it")
    return values


def _lists(name: str, value, batch: int, vocabulary: int) -> list[np.ndarray]:
    value = [()] * batch if value is None else value
    if len(value) != batch:
        raise ValueError(f"{name} must hold {batch} lists, got {len(value)}; give an empty one where none")
    arrays = [np.asarray(list(tokens), np.int64) for tokens in value]
    for row, tokens in enumerate(arrays):
        bad = tokens[(tokens < 0) | (tokens >= vocabulary)]
        if bad.size:
            raise ValueError(
                f"{name} must hold ids from 0 to {vocabulary - 1}, got {bad[0]} for request {row}; "
                "is this another model's tokenizer?"
            )
    return arrays


@dataclass(frozen=True)
class Requests:
    """Columns of length B. Build one with `Requests.of`, which checks."""

    vocabulary: int
    temperature: np.ndarray
    top_p: np.ndarray
    min_p: np.ndarray
    presence: np.ndarray
    frequency: np.ndarray
    repetition: np.ndarray
    top_k: np.ndarray  # 0 is off
    seed: np.ndarray  # uint64
    position: np.ndarray  # how many tokens this request has drawn, a fresh counter for every draw
    prompts: list[np.ndarray] = field(repr=False)
    outputs: list[np.ndarray] = field(repr=False)
    bias: list[dict[int, float]] = field(repr=False)
    banned: list[np.ndarray] = field(repr=False)
    allowed: np.ndarray | None = field(
        repr=False, default=None
    )  # int32 [B, ceil(V / 32)], a set bit allows a token

    @classmethod
    def of(cls, batch: int, vocabulary: int, *, allowed=None, bias=None, **columns) -> "Requests":
        if batch < 1 or vocabulary < 1:
            raise ValueError(
                f"batch and vocabulary must be at least 1, got {batch} and {vocabulary}; check the logits"
            )
        lists = {
            n: _lists(n, columns.pop(n, None), batch, vocabulary) for n in ("prompts", "outputs", "banned")
        }
        unknown = set(columns) - set(NUMBERS) - set(WHOLE)
        if unknown:
            raise ValueError(
                f"parameters must be among {sorted(NUMBERS | WHOLE)}, got {sorted(unknown)}; see NUMBERS"
            )
        types = {n: np.float32 for n in NUMBERS} | {
            "top_k": np.int32,
            "seed": np.uint64,
            "position": np.int32,
        }
        data = {
            name: np.array(_column(name, columns.get(name), batch, *rule), types[name])
            for name, rule in (NUMBERS | WHOLE).items()
        }
        allowed = None if allowed is None else _words(allowed, batch, vocabulary)
        return cls(vocabulary, **data, **lists, bias=_bias(bias, batch, vocabulary), allowed=allowed)

    @property
    def batch(self) -> int:
        return len(self.temperature)

    def row(self, i: int) -> "Requests":
        """Return request i alone, to show that its neighbours don't matter."""
        return self.rows(slice(i, i + 1))

    def rows(self, some: slice) -> "Requests":
        columns = {
            n: getattr(self, n)[some] for n in (*NUMBERS, *WHOLE, "prompts", "outputs", "bias", "banned")
        }
        return Requests(
            self.vocabulary, **columns, allowed=None if self.allowed is None else self.allowed[some]
        )

    def penalised(self) -> bool:
        return bool(np.any(self.presence != 0) or np.any(self.frequency != 0) or np.any(self.repetition != 1))

    def history(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        """(seen in prompt or output, times in the output) per token of the vocabulary."""
        counts = np.bincount(self.outputs[i], minlength=self.vocabulary)
        seen = counts > 0
        seen[self.prompts[i]] = True
        return seen, counts

    def added(self, i: int) -> np.ndarray | None:
        """Return the sum that is added to every logit: the bias, and -inf where banned."""
        if not self.bias[i] and not len(self.banned[i]):
            return None
        add = np.zeros(self.vocabulary, np.float32)
        add[list(self.bias[i])] = list(self.bias[i].values())
        add[self.banned[i]] = -np.inf
        return add


def _bias(bias: Sequence[Mapping[int, float]] | None, batch: int, vocabulary: int) -> list[dict[int, float]]:
    bias = [{}] * batch if bias is None else [dict(b) for b in bias]
    _lists("bias", bias, batch, vocabulary)
    for row, b in enumerate(bias):
        for token, value in b.items():
            if math.isnan(value) or value == math.inf or abs(value) > 1e30 and value != -math.inf:
                raise ValueError(
                    f"bias must be at most 1e30 either way, or -inf, got {value} for token {token} of request {row}; "
                    "to force a token, allow it alone"
                )
    return bias


def _words(allowed, batch: int, vocabulary: int) -> np.ndarray:
    allowed = np.asarray(allowed)
    shape = (batch, -(-vocabulary // 32))
    if allowed.shape != shape or allowed.dtype not in (np.int32, np.uint32):
        raise ValueError(
            f"allowed must be int32 of shape {shape}, got {allowed.dtype} {allowed.shape}; use pack_bits"
        )
    return allowed.view(np.int32)


def pack_bits(flags) -> np.ndarray:
    """Turn bool [B, V] into int32 [B, ceil(V / 32)], with token t as bit t % 32 of word t // 32."""
    flags = np.asarray(flags, bool)
    padded = np.zeros((len(flags), -(-flags.shape[1] // 32) * 32), np.uint8)
    padded[:, : flags.shape[1]] = flags
    return np.packbits(padded, axis=1, bitorder="little").view(np.int32)


def unpack_bits(words, vocabulary: int) -> np.ndarray:
    bytes_ = np.ascontiguousarray(words).view(np.uint8).reshape(len(words), -1)
    return np.unpackbits(bytes_, axis=1, bitorder="little")[:, :vocabulary].astype(bool)
