"""Run one step of the model over its slots: a batch of rows in, one token for each sequence out. A prompt takes the
same way.

The step knows no kernel. It hands each slot's filling its arguments, and passes the result on.
"""

from dataclasses import dataclass

import torch

from kernels import require
from kernels.next_bottleneck import reference
from kernels.next_bottleneck.cache import PagedCache
from kernels.next_bottleneck.slots import BY_NAME, SLOTS, Filling, guarded
from kernels.next_bottleneck.weights import Weights
from kernels.require import must

MOST_ROWS = 64  # sequences of a batch


@dataclass(frozen=True)
class Sampling:
    """How every sequence draws. Temperature 0 takes the likeliest token."""

    temperature: float = 0.0
    seed: int = 0

    def __post_init__(self):
        require.not_negative(temperature=self.temperature)
        require.whole(0, seed=self.seed)


@dataclass(frozen=True)
class Bound:
    """A layer's calls."""

    input_norm: object
    qkv: object
    rotary: object
    attention: object
    prompt: object
    out: object
    post_norm: object
    routed: object  # a fusion, or None
    router: object
    order: object
    experts: object
    combine: object


class Step:
    """Weights, a cache and a filling for each slot. `guard` holds every call to its contract."""

    def __init__(
        self,
        weights: Weights,
        cache: PagedCache,
        fillings: dict[str, Filling],
        sampling: Sampling = Sampling(),
        *,
        guard: bool = False,
    ):
        shape = weights.shape
        must(cache.shape == shape, "cache", "of the weights' shape", cache.shape, "make it for this model")
        must(
            cache.table.device == weights.device,
            "cache",
            f"on {weights.device}",
            cache.table.device,
            "make it there",
        )
        missing = [slot.name for slot in SLOTS if slot.name not in fillings]
        must(not missing, "fillings", "there for every slot", f"none for {', '.join(missing)}", "use filled")
        self.weights, self.cache, self.guard = weights, cache, guard
        self.sources = {name: one.source for name, one in fillings.items()}
        longest = cache.columns * shape.page
        turns = torch.from_numpy(reference.turns(longest, shape.head_dim, shape.theta)).float()
        turns = turns.to(weights.device)

        def bind(name, weight=None):
            if name not in fillings:
                return None
            call = fillings[name].make(weight, shape)
            must(callable(call), f"{name}'s make", "a maker of calls", type(call).__name__, "return the call")
            return guarded(BY_NAME[name], call, shape) if guard else call

        self.embed, self.head = bind("embed", weights.embedding), bind("head", weights.head)
        self.norm = bind("norm", weights.norm)
        self.sample = bind("sample", (sampling.temperature, sampling.seed))
        attention, prompt, order, combine = (
            bind(name) for name in ("attention", "prompt", "order", "combine")
        )
        self.layers = [
            Bound(
                input_norm=bind("norm", one.input_norm),
                qkv=bind("qkv", one.qkv),
                rotary=bind("rotary", (one.q_norm, one.k_norm, turns)),
                attention=attention,
                prompt=prompt,
                out=bind("out", one.out),
                post_norm=bind("norm", one.post_norm),
                routed=bind("routed", one.router),
                router=bind("router", one.router),
                order=order,
                experts=bind("experts", (one.gate_up, one.down)),
                combine=combine,
            )
            for one in weights.layers
        ]

    def logits(self, tokens, lens, table, prompt_of: tuple[int, int] | None = None) -> torch.Tensor:
        """Return fp32 logits: of every row, or of the last one where the rows are one sequence's prompt.

        tokens int32 (T,), lens int32 (T,): a row's keys with its own, and table int32 (T, pages of a sequence). With
        `prompt_of` = (sequence, its keys) the rows are its newest tokens, and attention reads them together.
        """
        residual, x = self.embed(tokens), None
        for i, layer in enumerate(self.layers):
            k_cache, v_cache = self.cache.keys[i], self.cache.values[i]
            q = layer.rotary(layer.qkv(layer.input_norm(x, residual)), lens, table, k_cache, v_cache)
            if prompt_of is None:
                y = layer.attention(q, k_cache, v_cache, lens, table)
            else:
                y = layer.prompt(q, *self.keys_of(*prompt_of, k_cache, v_cache))
            y = layer.post_norm(layer.out(y.flatten(1)), residual)
            if layer.routed is None:
                topk_ids, topk_weights = layer.router(y)
                rows, expert_offsets, inv_permuted_idx = layer.order(y, topk_ids)
            else:
                topk_ids, topk_weights, rows, expert_offsets, inv_permuted_idx = layer.routed(y)
            x = layer.combine(layer.experts(rows, expert_offsets), inv_permuted_idx, topk_weights)
        y = self.norm(x, residual)
        return self.head(y if prompt_of is None else y[-1:])

    def keys_of(self, sequence: int, keys: int, *caches):
        """Return each cache's (kv heads, keys, head dim) of one sequence, its pages brought together."""
        pages = self.cache.table[sequence, : -(-keys // self.weights.shape.page)].long()
        return tuple(one[pages].transpose(0, 1).flatten(1, 2)[:, :keys] for one in caches)

    def read(self, sequence: int, tokens: list[int]) -> torch.Tensor:
        """Take a prompt (or more of one) into the cache. Return the logits (1, V) of the next token."""
        self._check_tokens(tokens)
        self.cache.grow(sequence, len(tokens))
        keys, device = self.cache.lens[sequence], self.weights.device
        given = torch.tensor(tokens, dtype=torch.int32, device=device)
        lens = torch.arange(keys - len(tokens) + 1, keys + 1, dtype=torch.int32, device=device)
        table = self.cache.table[sequence : sequence + 1].expand(len(tokens), -1).contiguous()
        return self.logits(given, lens, table, (sequence, keys))

    def decode(self, sequences: list[int], tokens: list[int]) -> torch.Tensor:
        """Take one more token of each sequence. Return the logits (T, V) of the next tokens."""
        must(
            0 < len(sequences) <= MOST_ROWS and len(set(sequences)) == len(sequences),
            "sequences",
            f"1 to {MOST_ROWS} different ones",
            sequences,
            "a step takes one token of each",
        )
        must(len(tokens) == len(sequences), "tokens", f"{len(sequences)} in number", len(tokens), "one each")
        self._check_tokens(tokens)
        for sequence in sequences:
            self.cache.grow(sequence, 1)
        device = self.weights.device
        lens = [self.cache.lens[sequence] for sequence in sequences]
        given, lens = (torch.tensor(x, dtype=torch.int32, device=device) for x in (tokens, lens))
        return self.logits(given, lens, self.cache.table[sequences].contiguous())

    def _check_tokens(self, tokens: list[int]) -> None:
        must(len(tokens) > 0, "tokens", "at least one", "none", "give a prompt")
        most = self.weights.shape.vocabulary - 1
        for token in tokens:
            must(0 <= token <= most, "token", f"from 0 to {most}", token, "is it another vocabulary's?")

    def next_of(self, logits, sequences: list[int]) -> list[int]:
        """Return the token that each row's logits draw."""
        lens = torch.tensor(
            [self.cache.lens[sequence] for sequence in sequences], dtype=torch.int32, device=logits.device
        )
        return self.sample(logits, lens).tolist()


def generate(step: Step, prompts: list[list[int]], most: int, end: int | None = None) -> list[list[int]]:
    """Return up to `most` tokens after each prompt, all prompts decoded as one batch. `end` stops a sequence.

    The cache's sequences 0, 1, .. are used, and must be free. They are given back.
    """
    require.count(most=most)
    must(
        0 < len(prompts) <= min(MOST_ROWS, step.cache.sequences),
        "prompts",
        f"1 to {min(MOST_ROWS, step.cache.sequences)}",
        len(prompts),
        "make the cache for more",
    )
    said: list[list[int]] = []
    for sequence, prompt in enumerate(prompts):
        said.append(step.next_of(step.read(sequence, prompt), [sequence]))
    for _ in range(most - 1):
        going = [s for s, one in enumerate(said) if one[-1] != end]
        if not going:
            break
        logits = step.decode(going, [said[s][-1] for s in going])
        for s, token in zip(going, step.next_of(logits, going), strict=True):
            said[s].append(token)
    for sequence in range(len(prompts)):
        step.cache.release(sequence)
    return said
