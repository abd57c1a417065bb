"""Fill slots with the learner's answers of the labs. Their `launch(p)` is run with a slot's tensors, and nothing is
copied in by hand.

ADAPTERS is the table question -> slot's filling. An answer binds its arguments by name, as in its lab, so one runner
serves all of them. A comment explains anything that an adapter adds to an answer.
"""

from collections.abc import Callable
from types import SimpleNamespace

import torch
import torch.nn.functional as F

from kernels.next_bottleneck.slots import BY_NAME, Filling
from kernels.require import must

NAMES = {torch.float16: "fp16", torch.bfloat16: "bf16", torch.float32: "fp32", torch.int32: "i32"}
TORCH = {name: dtype for dtype, name in NAMES.items()} | {"i8": torch.int8}
SM_COUNT = 16  # of the machine that replaces a GPU
FORMERLY = {  # tensors' names in answers that were written before the labs took vLLM's names
    "topk_ids": "chosen",
    "expert_offsets": "offsets",
    "sorted_token_ids": "picks",
    "inv_permuted_idx": "place",
    "expert_ids": "owner",
    "topk_weights": "weights",
}


def run(launch: Callable, tensors: dict[str, tuple[torch.Tensor, str]], **numbers) -> None:
    """Run a plan: `tensors` are (tensor, letters of its axes) by name, `numbers` sizes and scalars.

    As in the labs, kernels may take `<name>_ptr`, `stride_<name><axis>`, every number and the plan's own constants.
    """
    known, device = dict(numbers), next(iter(tensors.values()))[0].device
    tensors = tensors | {FORMERLY[name]: one for name, one in tensors.items() if name in FORMERLY}
    for name, (tensor, axes) in tensors.items():
        known |= {f"stride_{name}{axis}": step for axis, step in zip(axes, tensor.stride(), strict=True)}
    dtypes = {name: NAMES[tensor.dtype] for name, (tensor, _) in tensors.items()}
    count = (
        torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else SM_COUNT
    )
    plan = launch(SimpleNamespace(**known, dtypes=dtypes, sm_count=count))
    is_plan = isinstance(plan, dict) and isinstance(plan.get("steps"), list)
    must(is_plan, "launch(p)", "a dict with steps", type(plan).__name__, "return the plan as in the lab")
    known |= {f"{name}_ptr": tensor for name, (tensor, _) in tensors.items()}
    for name, (shape, dtype, fill) in plan.get("scratch", {}).items():
        must(dtype in TORCH, f"scratch {name}", f"one of {', '.join(TORCH)}", dtype, "name a listed dtype")
        known[f"{name}_ptr"] = torch.full(shape, fill, dtype=TORCH[dtype], device=device)
    for step in plan["steps"]:
        kernel, given = step["kernel"], known | step.get("constexprs", {})
        missing = [name for name in kernel.arg_names if name not in given]
        must(not missing, kernel.__name__, "of known arguments", ", ".join(missing), "see the lab's list")
        options = {name: step[name] for name in ("num_warps", "num_stages") if name in step}
        kernel[tuple(step["grid"])](**{name: given[name] for name in kernel.arg_names}, **options)


def product(launch: Callable, out_dtype: torch.dtype | None = None) -> Filling:
    """Compute y = x @ w.T, as C = A B with B a transposed view of the weight."""

    def make(weight, shape):
        must(isinstance(weight, torch.Tensor), "w", "in 16 bits", "codes", "the lab's GEMM unpacks nothing")

        def call(x):
            (m, k), n = x.shape, len(weight)
            y = torch.empty(m, n, dtype=out_dtype or x.dtype, device=x.device)
            run(launch, {"a": (x, "mk"), "b": (weight.t(), "kn"), "c": (y, "mn")}, M=m, N=n, K=k)
            return y

        return call

    return Filling(make, "learner")


def norm(launch: Callable) -> Filling:
    """Replace x by zeros, because a model's first norm has no x to add."""

    def make(weight, shape):
        def call(x, residual):
            x = torch.zeros_like(residual) if x is None else x
            y = torch.empty_like(residual)
            tensors = {"x": (x, "mn"), "r": (residual, "mn"), "w": (weight, "n"), "y": (y, "mn")}
            run(launch, tensors, M=len(residual), N=residual.shape[1], eps=shape.eps)
            return y

        return call

    return Filling(make, "learner")


def rotary(launch: Callable) -> Filling:
    def make(weight, shape):
        q_norm, k_norm, turns = weight

        def call(qkv, lens, table, k_cache, v_cache):
            q = torch.empty(len(qkv), shape.q_heads, shape.head_dim, dtype=qkv.dtype, device=qkv.device)
            tensors = {
                "x": (qkv, "tc"),
                "lens": (lens, "t"),
                "table": (table, "tl"),
                "turns": (turns, "pd"),
                "wq": (q_norm, "d"),
                "wk": (k_norm, "d"),
                "q": (q, "thd"),
                "k": (k_cache, "phsd"),
                "v": (v_cache, "phsd"),
            }
            sizes = {"H": shape.q_heads, "G": shape.kv_heads, "D": shape.head_dim, "S": shape.page}
            sizes |= {"L": table.shape[1], "P": len(k_cache)}
            run(launch, tensors, T=len(qkv), **sizes, eps=shape.eps)
            return q

        return call

    return Filling(make, "learner")


def attention(launch: Callable) -> Filling:
    """Attend to one sequence at a time. Its pages are gathered first, because the lab's cache is contiguous."""

    def make(weight, shape):
        def call(q, k_cache, v_cache, lens, table):
            y = torch.empty_like(q)
            for row, keys in enumerate(lens.tolist()):
                pages = table[row, : -(-keys // shape.page)].long()
                k, v = (
                    one[pages].transpose(0, 1).flatten(1, 2)[None, :, :keys].contiguous()
                    for one in (k_cache, v_cache)
                )
                run(
                    launch,
                    {
                        "q": (q[row : row + 1], "bhd"),
                        "k": (k, "bhnd"),
                        "v": (v, "bhnd"),
                        "o": (y[row : row + 1], "bhd"),
                    },
                    B=1,
                    H=shape.q_heads,
                    G=shape.kv_heads,
                    N=keys,
                    D=shape.head_dim,
                    scale=shape.head_dim**-0.5,
                )
            return y

        return call

    return Filling(make, "learner")


def attention_in_a_graph(launch: Callable) -> Filling:
    """Decode all rows in one call over all pages of the table, which a graph can hold, as no shape depends on a length.

    The lab's kernel knows no lengths. So keys beyond a row's end are copies of its last key, with values of zero, which
    only enlarge the softmax's denominator. A second run, over values of one, returns the share of the real keys in it.
    The share is at least 1 / keys, because a copy weighs no more than its original.
    """

    def make(weight, shape):
        positions = {}  # made before a capture, and at the same address in every replay

        def call(q, k_cache, v_cache, lens, table):
            most, kind = table.shape[1] * shape.page, (table.shape[1], q.device)
            if kind not in positions:
                positions[kind] = torch.arange(most, dtype=torch.int32, device=q.device)
            at = torch.minimum(positions[kind], lens[:, None] - 1)
            pages, slots = table.gather(1, (at // shape.page).long()), at % shape.page
            k, v = (one[pages, :, slots].transpose(1, 2) for one in (k_cache, v_cache))  # (T, G, keys, D)
            real = (positions[kind] < lens[:, None]).to(v.dtype)[:, None, :, None].expand(v.shape)
            found = []
            for values in (v * real, real):
                y = torch.empty(q.shape, dtype=torch.float32, device=q.device)
                tensors = {"q": (q, "bhd"), "k": (k, "bhnd"), "v": (values, "bhnd"), "o": (y, "bhd")}
                sizes = {"B": len(q), "H": shape.q_heads, "G": shape.kv_heads, "N": most, "D": shape.head_dim}
                run(launch, tensors, **sizes, scale=shape.head_dim**-0.5)
                found.append(y)
            return (found[0] / found[1]).to(q.dtype)

        return call

    return Filling(make, "learner")


def prompt(launch: Callable) -> Filling:
    def make(weight, shape):
        def call(q, k, v):
            y = torch.empty_like(q)
            run(
                launch,
                {
                    "q": (q.transpose(0, 1)[None], "bhmd"),
                    "k": (k[None], "bhnd"),
                    "v": (v[None], "bhnd"),
                    "o": (y.transpose(0, 1)[None], "bhmd"),
                },
                B=1,
                H=shape.q_heads,
                G=shape.kv_heads,
                M=len(q),
                N=k.shape[1],
                D=shape.head_dim,
                scale=shape.head_dim**-0.5,
            )
            return y

        return call

    return Filling(make, "learner")


def order(launch: Callable) -> Filling:
    """Build the lab's four tables with tiles of one row. PyTorch gathers the rows."""

    def make(weight, shape):
        def call(x, topk_ids):
            tokens, top_k = len(topk_ids), topk_ids.shape[1]

            def table(*size):
                return torch.empty(size, dtype=torch.int32, device=x.device)

            expert_offsets, sorted_token_ids, inv_permuted_idx, expert_ids = (
                table(shape.experts + 1),
                table(tokens * top_k),
                table(tokens, top_k),
                table(tokens * top_k),
            )
            tensors = {
                "topk_ids": (topk_ids, "tk"),
                "expert_offsets": (expert_offsets, "e"),
                "sorted_token_ids": (sorted_token_ids, "r"),
                "inv_permuted_idx": (inv_permuted_idx, "tk"),
                "expert_ids": (expert_ids, "i"),
            }
            run(launch, tensors, T=tokens, K=top_k, E=shape.experts, TILE=1)
            return x[sorted_token_ids.long() // top_k], expert_offsets, inv_permuted_idx

        return call

    return Filling(make, "learner")


def experts(launch: Callable) -> Filling:
    """Run the lab's grouped matmul twice, on the codes as four bit planes. PyTorch computes SiLU in between."""

    def make(weight, shape):
        held = [(planes(part.codes()), part.scales) for part in weight]
        for part in weight:
            must(
                part.group == 32,
                "group",
                "32, a word's columns",
                part.group,
                "the lab's kernel knows no other",
            )
        levels = torch.arange(-8, 8, device=weight[0].scales.device).to(weight[0].scales.dtype)

        def product(x, expert_offsets, words, scales):
            y = torch.empty(len(x), scales.shape[1], dtype=x.dtype, device=x.device)
            tensors = {
                "w": (words, "ebnk"),
                "s": (scales, "eng"),
                "c": (levels, "l"),
                "r": (expert_offsets, "e"),
                "x": (x, "mk"),
                "y": (y, "mn"),
            }
            run(launch, tensors, M=len(x), N=scales.shape[1], K=x.shape[1], E=shape.experts, BITS=4)
            return y

        def call(rows, expert_offsets):
            gate, up = product(rows, expert_offsets, *held[0]).chunk(2, dim=-1)
            h = F.silu(gate.float()) * up.float()
            return product(h.to(rows.dtype), expert_offsets, *held[1])

        return call

    return Filling(make, "learner")


def planes(codes: torch.Tensor) -> torch.Tensor:
    """Return int32 (experts, 4, N, K / 32): bit j of a word is one bit of the code of its column j."""
    columns = codes.int().unflatten(-1, (-1, 32))
    shift = torch.arange(32, dtype=torch.int32, device=codes.device)
    return torch.stack([((columns >> b & 1) << shift).sum(-1).int() for b in range(4)], dim=1)


def combine(launch: Callable) -> Filling:
    def make(weight, shape):
        def call(rows, inv_permuted_idx, topk_weights):
            (tokens, top_k), hidden = inv_permuted_idx.shape, rows.shape[1]
            y = torch.empty(tokens, hidden, dtype=rows.dtype, device=rows.device)
            tensors = {
                "rows": (rows, "rh"),
                "inv_permuted_idx": (inv_permuted_idx, "tk"),
                "topk_weights": (topk_weights, "tk"),
                "out": (y, "th"),
            }
            run(launch, tensors, T=tokens, K=top_k, E=shape.experts, TILE=1, H=hidden)
            return y

        return call

    return Filling(make, "learner")


def sample(launch: Callable) -> Filling:
    """The lab's draw knows a seed for each row. Here it is another one at every length."""

    def make(weight, shape):
        temperature, seed = weight

        def call(logits, lens):
            rows = len(logits)
            token = torch.empty(rows, dtype=torch.int32, device=logits.device)
            warm = torch.full((rows,), temperature, dtype=torch.float32, device=logits.device)
            tensors = {
                "logits": (logits, "bv"),
                "temperature": (warm, "b"),
                "seed": (lens + seed, "b"),
                "token": (token, "b"),
            }
            run(launch, tensors, B=rows, V=logits.shape[1])
            return token

        return call

    return Filling(make, "learner")


# Slot -> what turns the answer of the slot's question into its filling.
ADAPTERS = {
    "norm": norm,
    "qkv": product,
    "rotary": rotary,
    "attention": attention,
    "prompt": prompt,
    "out": product,
    "order": order,
    "experts": experts,
    "combine": combine,
    "head": lambda launch: product(launch, torch.float32),
    "sample": sample,
}

IN_A_GRAPH = {"attention": attention_in_a_graph}  # which waits for no length


def fill(answers: dict[str, Callable], in_a_graph: bool = False) -> dict[str, Filling]:
    """Return the fillings that answers give, by question: {"gemm_tiling.tiled_gemm": launch, ..}.

    A question may fill several slots. An answer that is missing leaves its slot to others. For a graph the adapters
    that would ask for a number from the GPU take their other form.
    """
    adapters = ADAPTERS | (IN_A_GRAPH if in_a_graph else {})
    questions = {slot.question for name, slot in BY_NAME.items() if name in ADAPTERS}
    for question, answer in answers.items():
        listed = ", ".join(sorted(questions))
        must(question in questions, "question", f"one of {listed}", repr(question), "no slot asks for it")
        must(callable(answer), question, "a launch function", type(answer).__name__, "pass launch itself")
    return {
        name: adapter(answers[BY_NAME[name].question])
        for name, adapter in adapters.items()
        if BY_NAME[name].question in answers
    }
