"""What an answer of given tiles would spend on a case, by the cost models: {(tensor, access, count): amount}."""

import math
from dataclasses import replace

from grader.judge.traffic import A_DOT
from grader.questions import Budget, Case
from grader.topics.flash_attention.shared import shape_of
from grader.topics.moe_routing.grouped_gemm.cases import routing
from kernels.flash_attention import cost as attention_cost
from kernels.gemm_tiling import cost as gemm_cost
from kernels.moe_routing import cost as moe_cost
from kernels.roofline import cost as roofline_cost


def gemm(
    case: Case, bm: int, bn: int, bk: int = 32, group: int = 8, outside: float = 1.0, by_columns=False
) -> dict:
    """A tiled GEMM; `outside` operations an element of the tile after each step along K."""
    m, n, k = (case.sizes[s] for s in "MNK")
    rows, columns, steps = math.ceil(m / bm), math.ceil(n / bn), math.ceil(k / bk)
    waves = (m, n, k, bm, bn) if not by_columns else (n, m, k, bn, bm)
    padded = rows * bm * columns * bn * steps
    return {
        ("a", "load", "dedup"): 2 * m * k * columns,
        ("b", "load", "dedup"): 2 * k * n * rows,
        ("c", "store", "dedup"): 2 * m * n,
        ("c", "store", "programs"): rows * columns,
        ("scratch", "any", "dedup"): 0,
        ("all", "load", "dedup"): 2 * gemm_cost.tile_loads(m, n, k, bm, bn),
        ("all", "load", "wave"): sum(gemm_cost.unique_bytes_per_wave(*waves, group, case.sm_count)),
        ("all", "load", "dot"): 2 * padded * bk,
        ("all", "load", "operations"): outside * padded + padded / steps,
    }


def block_scaled(case: Case, bm: int, bn: int, bk: int = 128, outside: float = 2.0) -> dict:
    m, n, k = (case.sizes[s] for s in "MNK")
    rows, columns, steps = math.ceil(m / bm), math.ceil(n / bn), math.ceil(k / bk)
    padded = rows * bm * columns * bn * steps
    sa, sb = 4 * m * steps * columns, 4 * steps * rows * columns
    loads = gemm_cost.tile_loads(m, n, k, bm, bn)
    return {
        ("a", "load", "dedup"): m * k * columns,
        ("b", "load", "dedup"): k * n * rows,
        ("sa", "load", "dedup"): sa,
        ("sb", "load", "dedup"): sb,
        ("c", "store", "dedup"): 2 * m * n,
        ("c", "store", "programs"): rows * columns,
        ("scratch", "any", "dedup"): 0,
        ("all", "load", "dedup"): loads + sa + sb,
        ("all", "load", "dot"): 2 * padded * bk,
        ("all", "load", "operations"): outside * padded + padded / steps,
    }


def norm(case: Case, rows: int = 1, reads: int = 1, work: float = 15.0, kept: int = 0) -> dict:
    """`rows` rows a program, x read `reads` times, `kept` bytes an element in scratch."""
    m, n = case.sizes["M"], case.sizes["N"]
    size, block = roofline_cost.tensor_bytes(m, n), 1 << (n - 1).bit_length()
    vector = roofline_cost.row_vector_bytes(math.ceil(m / rows), n)
    return {
        ("x", "load", "dedup"): reads * size,
        ("y", "store", "dedup"): size,
        ("w", "load", "dedup"): vector,
        ("b", "load", "dedup"): vector,
        ("scratch", "any", "dedup"): kept * m * n,
        ("x", "load", "sectors"): reads * size,
        ("y", "store", "sectors"): size,
        ("y", "store", "programs"): math.ceil(m / rows),
        ("all", "load", "operations"): work * math.ceil(m / rows) * rows * block,
    }


def attention(
    case: Case, bm: int, bn: int, skips=True, starts=True, kept: int = 0, more: float = 0.0
) -> dict:
    """A tiled forward: `skips` what lies behind the diagonal, `starts` at the window, `kept` bytes a row in scratch."""
    shape, tiling, s = shape_of(case), attention_cost.Tiling(bm, bn), case.sizes
    shape = shape if starts else replace(shape, left=None)
    shape = shape if skips else replace(shape, right=None)
    moved, pairs = attention_cost.tiled_traffic(shape, tiling), attention_cost.tiled_pairs(shape, tiling)
    heads = s["B"] * s["H"]
    return {
        ("q", "load", "dedup"): moved.q,
        ("k", "load", "dedup"): moved.k,
        ("v", "load", "dedup"): moved.v,
        ("o", "store", "dedup"): moved.out,
        ("o", "store", "programs"): heads * math.ceil(s["M"] / bm),
        ("scratch", "any", "dedup"): kept * heads * s["M"],
        ("all", "load", "dedup"): moved.loads,
        ("all", "load", "dot"): attention_cost.tiled_flops(shape, tiling),
        ("all", "load", "operations"): heads * pairs * (9 + more + (2 + more) * s["D"] / bn),
    }


def decode(case: Case, bn: int, chunk: int = 0, readers: int = 1) -> dict:
    """Split-KV decoding: as many splits as fill the machine twice, or `chunk` keys each."""
    s = case.sizes
    wanted = math.ceil(2 * case.sm_count / (s["B"] * s["G"]))
    chunk = chunk or math.ceil(math.ceil(s["N"] / wanted) / bn) * bn
    splits, rows = math.ceil(s["N"] / chunk), s["B"] * s["H"]
    cache, ends = 2 * s["B"] * s["G"] * s["N"] * s["D"] * readers, 2 * rows * s["D"]
    scratch = 2 * 4 * rows * splits * (s["D"] + 2)
    return {
        ("k", "load", "dedup"): cache,
        ("v", "load", "dedup"): cache,
        ("k", "load", "programs"): splits * s["B"] * s["G"] * readers,
        ("o", "store", "dedup"): ends,
        ("o", "store", "programs"): s["B"] * s["G"],
        ("all", "any", "dedup"): 2 * cache + ends * (splits + 1) + scratch,
    }


def backward(case: Case, bm: int, bn: int, atomics=False, skips=True, products: int = 7) -> dict:
    shape, s = shape_of(case), case.sizes
    tiling, turned = attention_cost.Tiling(bm, bn), attention_cost.Tiling(bn, bm)
    shape = shape if skips else replace(shape, right=None)
    heads, out = s["B"] * s["H"], 2 * s["D"] * s["B"] * s["H"] * (s["M"] + 2 * s["N"])
    pairs = heads * attention_cost.tiled_pairs(
        shape, max(tiling, turned, key=lambda t: attention_cost.tiled_pairs(shape, t))
    )
    sums = 4 * s["D"] * heads * s["M"]
    walked = attention_cost.tiled_traffic(shape, turned).k * 2 * atomics
    return {
        ("all", "load", "dot"): (5 if atomics else products) * 2 * s["D"] * pairs,
        ("all", "load", "operations"): pairs * (10 if atomics else 16),
        ("all", "load", "dedup"): attention_cost.backward_loads(shape, tiling) + sums * atomics,
        ("scratch", "any", "dedup"): (walked + 2 * sums) * atomics + 16 * heads * s["M"],
        ("all", "store", "dedup"): out + 4 * heads * s["M"],
        ("dk", "store", "programs"): heads * math.ceil(s["N"] / bn),
        ("dq", "store", "programs"): heads * math.ceil(s["M"] / bm),
        ("o", "load", "programs"): heads * math.ceil(s["M"] / bm),
    }


def draw(
    case: Case, reads: float = 1, chunk: int = 0, work: float = 12, by_word: int = 1, rows: int = 1
) -> dict:
    """`rows` rows a program; with `chunk`, a program for each so many logits and a second launch."""
    b, v, n = case.sizes["B"], case.sizes["V"], case.sizes.get("L", 0)
    logits, partial = 4 * b * v, 8 * b * math.ceil(v / chunk) if chunk else 0
    return {
        ("logits", "load", "dedup"): reads * logits,
        ("logits", "load", "sectors"): reads * logits,
        ("logits", "load", "programs"): math.ceil(b / rows) * math.ceil(v / (chunk or v)),
        ("scratch", "any", "dedup"): 2 * partial,
        ("token", "store", "dedup"): 4 * b,
        ("allowed", "load", "dedup"): 4 * b * math.ceil(v / 32) * by_word,
        ("history", "load", "dedup"): 4 * b * n * math.ceil(v / 64),
        ("all", "load", "operations"): work * b * v * 1.1,
    }


def grouped(case: Case, again: int = 64, reads: float = 1, kept: int = 0, work: float = 2) -> dict:
    """A maximum for each group of 64, and so many groups of each row again; `kept` bytes a logit in scratch."""
    b, v = case.sizes["B"], case.sizes["V"]
    logits = 4 * b * (reads * v + 64 * again)
    return {
        ("logits", "load", "dedup"): logits,
        ("logits", "load", "sectors"): logits,
        ("logits", "load", "programs"): b,
        ("scratch", "any", "dedup"): 2 * (4 * b * (math.ceil(v / 64) + again) + b * v * kept),
        ("token", "store", "dedup"): 4 * b,
        ("all", "load", "operations"): work * b * (v + 64 * again),
    }


def order(case: Case, block: int = 64, reads: float = 2, kept: int = 0, work: float = 9) -> dict:
    """Counts of blocks of tokens, then rows; `kept` bytes a pair in scratch besides."""
    t, k, e = (case.sizes[x] for x in "TKE")
    blocks, lanes, pairs = math.ceil(t / block), 1 << (e - 1).bit_length(), 4 * t * k
    rooms = moe_cost.most_tiles(t, k, e, case.sizes["TILE"])
    return {
        ("topk_ids", "load", "dedup"): reads * pairs,
        ("topk_ids", "load", "programs"): blocks,
        ("sorted_token_ids", "store", "programs"): blocks,
        ("scratch", "any", "dedup"): 4 * lanes * blocks * (1 + blocks) + kept * t * k,
        ("all", "atomic", "dedup"): 0,
        ("sorted_token_ids", "store", "dedup"): 4 * rooms * case.sizes["TILE"] + pairs,
        ("inv_permuted_idx", "store", "dedup"): pairs,
        ("expert_ids", "store", "dedup"): 8 * rooms,
        ("expert_offsets", "store", "dedup"): 4 * (e + 1),
        ("all", "load", "work"): work * t * k * lanes,
    }


def gated(case: Case, width: int, step: int = 64, times: float = 1, in_dot=True, kept: int = 0) -> dict:
    """Tiles of rows by strips of so many columns, weights read `times` times; `kept` bytes a number of h in scratch."""
    _, tiles, real = routing(case)
    h, n, tile = (case.sizes[x] for x in ("H", "N", "TILE"))
    strips = math.ceil(n / width)
    weights = times * tiles * moe_cost.grouped_traffic(1, 1, n, h, tile=tile, block_n=n, gated=True).weights
    slots = tiles * tile * strips * width
    return {
        ("w", "load", "dedup"): weights,
        ("w", "load", "sectors"): weights,
        ("w", "load", "programs"): tiles * strips,
        ("x", "load", "dedup"): 2 * real * h * strips,
        ("h", "store", "dedup"): 2 * real * n,
        ("scratch", "any", "dedup"): kept * real * n,
        ("all", "load", "dot"): in_dot * 4 * slots * math.ceil(h / step) * step,
        ("all", "load", "operations"): 6 * slots,
    }


def combined(
    case: Case, strip: int = 1024, reads: float = 1, kept: int = 0, tokens: int = 1, work: float = 3
) -> dict:
    """So many tokens a program; `kept` bytes a number of a pair's row in scratch."""
    t, k, h = (case.sizes[x] for x in "TKH")
    moved = moe_cost.combine_traffic(t, k, h, block_h=strip)
    return {
        ("rows", "load", "dedup"): reads * moved.rows,
        ("rows", "load", "sectors"): reads * moved.rows,
        ("rows", "load", "programs"): math.ceil(t / tokens) * math.ceil(h / strip),
        ("inv_permuted_idx", "load", "dedup"): moved.tables / 2,
        ("topk_weights", "load", "dedup"): moved.tables / 2,
        ("out", "store", "dedup"): moved.written,
        ("scratch", "any", "dedup"): kept * t * k * h,
        ("all", "atomic", "dedup"): 0,
        ("all", "load", "operations"): work * t * k * (1 << (h - 1).bit_length()),
    }


OF_NO_TENSOR = ("operations", "integers", "dot", "wide dot", "work")


def known(spent: dict, key: tuple) -> float:
    """What was spent; of every kind at least what is known of each."""
    if key[2] == "work" and key not in spent:
        beside, dots = (spent.get((*key[:2], count), 0) for count in ("operations", "dot"))
        return beside + dots / A_DOT
    return spent.get(key, 0) if key[2] == "wide dot" else spent[key]


def over(budgets: list[Budget], spent: dict) -> list[str]:
    """The budgets that are not kept. A budget of something that `spent` doesn't know is an error."""
    found = []
    for budget in budgets:
        if budget.tensor == "all" and budget.count in ("sectors", "time"):
            continue  # of all accesses together, which no cost model knows (grader/judge/tests/test_account.py)
        tensor, access = ("all", "load") if budget.count in OF_NO_TENSOR else (budget.tensor, budget.access)
        key = tensor, access, budget.count
        amount = known(spent, key)
        if not budget.least <= amount <= budget.most:
            found.append(budget.what)
    return found
