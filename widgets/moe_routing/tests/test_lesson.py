"""What lesson 03 says of its formulas, experiments and recorded rows: its cells are run, its sentences stand in it and hold."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from kernels.machines import machine
from kernels.moe_routing import cost, reference
from kernels.moe_routing.routed import cut
from kernels.parts import amdahl
from widgets.tests.lesson_said import lesson, prose, run_cells

KERNELS = Path(cost.__file__).parents[1]
RESULTS = KERNELS / "moe_routing/results"
RUN = json.loads((RESULTS / "h200.json").read_text())
ROWS = {row["case"]: row for row in RUN["rows"]}
NARROW = json.loads((KERNELS / "quantization_layouts/results/h200.json").read_text())
LESSON = lesson("03_moe_routing")
PROSE, H200 = prose(LESSON), machine("H200")
MIXTRAL, QWEN, DEEPSEEK = (8, 2, 4096, 14336), (128, 8, 2048, 768), (256, 8, 7168, 2048)


@pytest.fixture(scope="module")
def cells():
    return run_cells(LESSON)


def layer(tokens, shape, **more):
    experts, k, hidden, wide = shape
    return cost.layer_cost(tokens, k, experts, hidden, wide, **more)


def best_us(tokens, shape, **more):
    one = layer(tokens, shape, **more)
    return 1e6 * H200.time(one.flops, one.bytes_moved)


def read(tokens, shape):
    return cost.expected_experts(tokens, shape[1], shape[0])


def caches(users):
    """Bytes of all contexts of 4096 tokens, in one layer of the model whose step the lesson counts."""
    return users * 4096 * 2 * 4 * 128 * 2


def first_with_more_cache():
    return next(users for users in range(1, 1000) if caches(users) > layer(users, QWEN).bytes_moved)


def sums(r, which):
    return r.differ[which]


def slots(r, name, tokens, tile):
    return r.useful[name, tokens, tile]


def between_launches(tokens, k, hidden, wide):
    """Bytes of rows that one launch leaves for the next: copied in order, h, and down's, each written and read; x and the answer."""
    rows = 2 * tokens * k
    return 2 * rows * (2 * hidden + wide) + 2 * 2 * tokens * hidden


FORMULAS = {  # a sentence of the lesson: (what it speaks of, from, to)
    "A token uses 352 million weights in Mixtral's layer and in DeepSeek's": (
        lambda r: {cost.moe_parameters(*shape)[1] for shape in (MIXTRAL, DEEPSEEK)} == {352_321_536}, 1, 1),
    "DeepSeek's layer holds 8x the weights": (
        lambda r: cost.moe_parameters(*DEEPSEEK)[0] / cost.moe_parameters(*MIXTRAL)[0], 8, 8),
    "1 − k / E = 15/16": (lambda r: 1 - QWEN[1] / QWEN[0], 15 / 16, 15 / 16),
    "For 16 tokens that is 82 of 128": (lambda r: read(16, QWEN), 81.5, 82.5),
    "the step takes 10x longer than for one": (lambda r: best_us(16, QWEN) / best_us(1, QWEN), 9.8, 10.4),
    "until all are read, at about 64 tokens": (lambda r: read(64, QWEN) / 128, 0.98, 0.99),
    "the 38 million weights that a token uses would take 16 µs": (
        lambda r: 2e6 * cost.moe_parameters(*QWEN)[1] / H200.bandwidth, 15.5, 16.4),
    "16 µs for one token and for 64": (lambda r: 64 / H200.ridge(), 0, 0.99),
    "The mixture takes 248 µs for 64": (lambda r: best_us(64, QWEN), 247.5, 248.5),
    "it reads all 604 million": (lambda r: cost.moe_parameters(*QWEN)[0] / 1e6, 603.5, 604.5),
    "The ridge of an H200 is 206": (lambda r: H200.ridge(), 205.5, 206.5),
    "824 tokens for Mixtral's shape": (lambda r: H200.ridge() * 8 / 2, 823.5, 824.5),
    "3297 for Qwen's": (lambda r: H200.ridge() * 128 / 8, 3296.5, 3297.5),
    "6593 for DeepSeek's": (lambda r: H200.ridge() * 256 / 8, 6592.5, 6593.5),
    "Four experts take 27 launches": (lambda r: cost.launches(4, fused=False), 27, 27),
    "The formula is 3 + 6 E, so 128 experts take 771": (lambda r: cost.launches(128, fused=False), 771, 771),
    "that is 3.9 ms": (lambda r: 771 * 5e-3, 3.8, 3.9),
    "15x the time of its bytes": (lambda r: 771 * 5 / best_us(256, QWEN), 14.8, 15.5),
    "there are 256 blocks of 16 tokens": (lambda r: 4096 / cut(4096, 2048, 128, True).block, 256, 256),
    "256 · 128 · 4 bytes = 131 KB": (lambda r: 256 * 128 * 4 / 1e3, 130.5, 131.5),
    "Nearly thirteen times faster": (
        lambda r: best_us(256, QWEN) / best_us(256, QWEN, active_experts=8), 12.6, 13),
    "the weights are a sixteenth": (
        lambda r: layer(256, QWEN, active_experts=128).weight_bytes / layer(256, QWEN, active_experts=8).weight_bytes, 16, 16),
    "12 programs per tile, 1536 in all, and 16 iterations": (lambda r: 128 * 768 / 64, 1536, 1536),
    "201 MB of requests for 1 MB of tokens": (lambda r: r.first.rows / 1e6, 200.5, 201.5),
    "read once each, 403 + 403 MB": (lambda r: r.first.weights / 2e6, 402.5, 403.5),
    "This line takes the time, 168 µs": (lambda r: 1e6 * r.first.weights / H200.bandwidth, 167.5, 168.5),
    "gate and up of DeepSeek's shape have 7.5 billion weights": (lambda r: 256 * 2 * 2048 * 7168 / 1e9, 7.45, 7.55),
    "134 MB read and 17 MB written": (
        lambda r: cost.combine_traffic(4096, 8, 2048, block_h=1024).rows / 1e6, 133.5, 134.5),
    "238 µs of traffic on top of 315 µs of arithmetic": (lambda r: 1e6 * r.glue / H200.bandwidth, 237.5, 238.5),
    "on top of 315 µs of arithmetic": (lambda r: best_us(4096, QWEN), 314.5, 315.5),
    "separate kernel for SiLU(gate) · up (151 MB)": (lambda r: r.steps["activation"] / 1e6, 150.5, 151.5),
    "become one pass (268 MB less)": (lambda r: r.steps["un-permute"] / 1e6, 268, 269),
    "With T = 16 the same formula gives 4.5 MB": (lambda r: r.glue / 256 / 1e6, 4.4, 4.5),
    "against 778 MB of weights": (lambda r: layer(16, QWEN).weight_bytes / 1e6, 777.5, 778.4),
    "Qwen's shape is still 3.2x faster at 1024 tokens": (lambda r: r.faster["Qwen3-like", 1024], 3.15, 3.25),
    "DeepSeek's 1.6x at 4096": (lambda r: r.faster["DeepSeek-like", 4096], 1.55, 1.65),
    "At 16 users, with 81%": (lambda r: max(r.share, key=r.share.get), 16, 16),
    "with 81%, because nearly two thirds of all experts are read": (lambda r: r.share[16], 0.805, 0.815),
    "nearly two thirds of all experts are read": (lambda r: read(16, QWEN) / 128, 0.63, 0.66),
    "For one user it is 56%": (lambda r: r.share[1], 0.555, 0.565),
    "from 145 users on the caches are larger": (lambda r: first_with_more_cache(), 145, 145),
    "the caches have nearly caught up with the experts": (lambda r: caches(128) / layer(128, QWEN).bytes_moved, 0.85, 0.95),
    "makes the step 1.7x faster at 16 users": (lambda r: amdahl(r.share[16], 2), 1.65, 1.75),
    "1.35x at 128": (lambda r: amdahl(r.share[128], 2), 1.345, 1.36),
    "A layer of DeepSeek's shape holds 22.5 GB": (lambda r: 2 * cost.moe_parameters(*DEEPSEEK)[0] / 1e9, 22.45, 22.6),
    "reads 1.8x the experts": (
        lambda r: cost.expected_experts(64, 8, 256) / cost.expected_experts(64, 8, 128), 1.75, 1.85),
    "64 tokens read 98% of Qwen's experts for 4 rows each": (lambda r: read(64, QWEN) / 128, 0.975, 0.985),
    "64 · 0.644 = 41": (lambda r: cost.expected_experts(16, 4, 64), 40.5, 41.5),
    "so a token costs 64% of what it cost alone": (lambda r: best_us(16, QWEN) / 16 / best_us(1, QWEN), 0.635, 0.645),
    "It saves less than a thousandth of the layer's bytes": (
        lambda r: 2 * 4096 * 128 / layer(4096, QWEN).bytes_moved, 0.0005, 0.001),
    "309 GFLOP at 4096": (lambda r: layer(4096, QWEN).expert_flops / 1e9, 308.5, 309.5),
    "383 at 4096 tokens with tiles of 128": (lambda r: 128 + (32768 - 128) // 128, 383, 383),
    "24 at T = 256, so 32": (lambda r: 16 + 2 * 16**0.5, 24, 24),
    "T (k + 1) H · bytes | 151 MB at 4096": (lambda r: 4096 * 9 * 2048 * 2 / 1e6, 150.5, 151.5),
    "100 / (100 + 8) = 93%": (lambda r: 100 / 108, 0.925, 0.93),
    "64 rows give 76%, 128 at best 78": (lambda r: 100 / 132, 0.755, 0.765),
}  # fmt: skip

EXPERIMENTS = {
    "to the chosen experts' share of the whole, 0.762 here": (
        lambda r: r.weighed["softmax of all, then top-k"][1].sum(), 0.7615, 0.7625),
    "a quarter too small": (lambda r: 1 - r.weighed["softmax of all, then top-k"][1].sum(), 0.2, 0.27),
    "The choice is the same": (
        lambda r: len({tuple(chosen[0]) for chosen, _ in r.weighed.values()}), 1, 1),
    "The weights are the same once they are divided by their sum": (
        lambda r: np.ptp([r.weighed[name][1] for name in ("top-k, then softmax of the chosen", "the same, divided by their sum")], 0).max(),
        0, 1e-9),
    "Only 13% of the tokens keep all eight experts": (lambda r: np.mean(r.kept == 8), 0.125, 0.135),
    "only 0.6% of the score is lost": (lambda r: 1 - r.worth[1] / r.worth[0], 0.0055, 0.0065),
    "Four in a hundred of these random tokens": (lambda r: r.other, 0.035, 0.045),
    "Expert 1 has six pairs and gets two tiles, expert 2 has none": (
        lambda r: (r.found.loads[1], r.found.loads[2], list(r.found.tile_expert).count(1)) == (6, 0, 2), 1, 1),
    "of tokens 4 and 5 get rows 8 and 9": (
        lambda r: (r.found.place[4, 0], r.found.place[5, 1]) == (8, 9), 1, 1),
    "128 pairs of matrices, of 6 and 3 MB": (lambda r: 2 * 2 * 768 * 2048 / 1e6, 6, 6.5),
    "67%, not 100": (lambda r: slots(r, "DeepSeek-like", 4096, 128).useful_share, 0.665, 0.675),
    "Tiles of 192 rows hold nearly every expert whole": (
        lambda r: slots(r, "DeepSeek-like", 4096, 192).tiles / 256, 1, 1.02),
    "but each weight is read once instead of 1.5 times": (
        lambda r: slots(r, "DeepSeek-like", 4096, 128).tiles / 256, 1.45, 1.55),
    "They need about the same number of slots": (
        lambda r: slots(r, "DeepSeek-like", 4096, 192).slots / slots(r, "DeepSeek-like", 4096, 128).slots, 0.97, 1.03),
    "For Qwen's shape 9% of the slots are useful with the shortest tiles": (lambda r: slots(r, "Qwen3-like", 16, 16).useful_share, 0.085, 0.095),
    "19% for Qwen's shape with 4096 tokens and tiles of 128": (
        lambda r: 1 - slots(r, "Qwen3-like", 4096, 128).useful_share, 0.185, 0.195),
    "10% if padding costs the same as with 64": (
        lambda r: 1 - slots(r, "Qwen3-like", 4096, 64).useful_share, 0.095, 0.105),
    "80% at 256 rows, tile 128 (81% drawn)": (
        lambda r: slots(r, "Qwen3-like", 4096, 128).useful_share, 0.805, 0.815),
    "a factor of 1 drops 2.6% by chance alone": (lambda r: r.dropped[0.0, 1.0], 0.0255, 0.0265),
    "and 1.25 drops nothing": (lambda r: r.dropped[0.0, 1.25], 0, 0),
    "even a factor of 2.0 drops 8%": (lambda r: r.dropped[0.5, 2.0], 0.075, 0.085),
    "About half of them": (lambda r: sums(r, "fp32"), 0.45, 0.55),
    "in fp32 as in bf16": (lambda r: sums(r, "bf16 throughout"), 0.45, 0.55),
    "hides all but 50 in a million": (lambda r: 1e6 * sums(r, "rounded once, at the end"), 45, 55),
    "so some 400 differ": (lambda r: 4096 * 2048 * sums(r, "rounded once, at the end"), 380, 420),
    "4096 tokens have 8 million elements": (lambda r: 4096 * 2048 / 1e6, 8, 8.5),
}  # fmt: skip


def slots_multiplied(tokens, tile):
    """Rows of an expert, padded to tiles, where the choice is biased as in the run."""
    rng = np.random.default_rng(0)
    rule = reference.Rule(8, "sigmoid", renormalise=True, groups=8, groups_kept=4)
    picks, _ = reference.route(rng.standard_normal((tokens, 256)), rule, 0.01 * rng.random(256))
    return tile * cost.tile_utilization(reference.count(picks, 256), tile).tiles / 256


def multiplied(tokens):
    """FLOP of DeepSeek's shape, shared expert and router included, of rows that are real."""
    experts, k, hidden, wide = DEEPSEEK
    return 2 * tokens * hidden * (3 * (k + 1) * wide + experts)


def us(case):
    return ROWS[case]["us"]


def ratio(case, peer):
    return ROWS[case]["peers"][f"torch {peer}"]["ratio"]


def of_limit(case):
    return ROWS[case]["share"]


def theirs(what):
    """Of every peer that was there, row by row."""
    return [peer[what] for row in RUN["rows"] for peer in row["peers"].values() if what in peer]


def of_mixtral(peer):
    return [ratio(case, peer) for case in ROWS if case.startswith("Mixtral")]


def narrow(rows, n, k):
    """Packed experts of topic 02 over 16 bits."""
    (row,) = (r for r in NARROW["rows"] if r["case"].startswith(f"8 x {rows} x {n} x {k} k4"))
    return row["peers"]["cuBLAS 16 bits"]["ratio"]


M, Q, D = "Mixtral top-2 T = {}", "Qwen3-like top-8 T = {}", "DeepSeek-like top-8 T = {}"
MEASURED = {  # of the newest run that is kept: whoever records anew learns here what has to be said anew
    "4.25 TB/s and 710 TFLOP/s": (lambda r: RUN["ceilings"]["copy"] / 1e12, 4.245, 4.255),
    "and 710 TFLOP/s": (lambda r: RUN["ceilings"]["bf16"] / 1e12, 709.5, 710.5),
    "103% of the limit at 16 tokens": (lambda r: of_limit(M.format(16)), 1.025, 1.035),
    "and DeepSeek's reaches it at 16 tokens": (lambda r: of_limit(D.format(16)), 1.025, 1.035),
    "at 16 tokens and at 256": (lambda r: of_limit(D.format(256)), 1.025, 1.035),
    "At 256 tokens Mixtral's shape is at 95%": (lambda r: of_limit(M.format(256)), 0.945, 0.955),
    "Qwen's at 91%": (lambda r: of_limit(Q.format(256)), 0.905, 0.915),
    "One token takes 31 µs": (lambda r: us(Q.format(1)), 30.5, 31.5),
    "its bytes need only 18 µs at the rate of a copy": (lambda r: ROWS[Q.format(1)]["limit_us"], 17.5, 18.4),
    "The layer is 3.4x faster than `grouped_mm`": (lambda r: ratio(Q.format(1), "grouped_mm"), 3.35, 3.45),
    "only 57% of the limit": (lambda r: of_limit(Q.format(1)), 0.565, 0.575),
    "No other row is further from its limit": (
        lambda r: min(ROWS, key=lambda case: ROWS[case]["share"]) == Q.format(1), 1, 1),
    "it takes 12x our time at 256 tokens": (lambda r: ratio(Q.format(256), "loop"), 11.5, 12.5),
    "and 7x at 4096": (lambda r: ratio(Q.format(4096), "loop"), 6.5, 7.4),
    "With Mixtral's eight large experts it takes 1.3x": (lambda r: min(of_mixtral("loop")), 1.25, 1.35),
    "1.3x to 1.4x and beats `grouped_mm`": (lambda r: max(of_mixtral("loop")), 1.35, 1.45),
    "and beats `grouped_mm`": (
        lambda r: min(b - a for a, b in zip(of_mixtral("loop"), of_mixtral("grouped_mm"), strict=True)), 0.01, 1),
    "a library's grouped GEMM 1.3x to 1.6x": (
        lambda r: [round(f(of_mixtral("grouped_mm")), 1) for f in (min, max)] == [1.3, 1.6], 1, 1),
    "It adds 15 and 16%, for weights that were never read": (lambda r: [round(r.claimed[0.2, t], 2) for t in (16, 256)] == [1.15, 1.16], 1, 1),
    "which moves the share by less than one percent": (
        lambda r: max(abs(r.claimed[0.01, t] - 1) for t in (16, 256)), 0, 0.01),
    "64% for Qwen's shape": (lambda r: of_limit(Q.format(4096)), 0.635, 0.645),
    "77% for DeepSeek's": (lambda r: of_limit(D.format(4096)), 0.765, 0.775),
    "94% for Mixtral's": (lambda r: of_limit(M.format(4096)), 0.935, 0.945),
    "the rows between launches move 0.7 GB": (lambda r: between_launches(4096, *QWEN[1:]) / 1e9, 0.65, 0.75),
    "while the limit counts 0.03": (lambda r: layer(4096, QWEN).token_bytes / 1e9, 0.03, 0.035),
    "160 slots for 128 rows": (lambda r: slots_multiplied(4096, 64), 157, 163),
    "Tiles of 192 rows hold nearly every expert whole, so its weights": (lambda r: slots_multiplied(4096, 192) / 192, 1, 1.05),
    "the limit assumes that 5.4 ms of reading": (lambda r: ROWS[D.format(4096)]["limit_us"] / 1e3, 5.35, 5.45),
    "hide 4.6 ms of multiplying": (lambda r: 1e3 * multiplied(4096) / RUN["ceilings"]["bf16"], 4.55, 4.65),
    "`grouped_mm` takes 1.5x our time": (lambda r: ratio(D.format(4096), "grouped_mm"), 1.45, 1.54),
    "Our layer's error against the reference is 0.2 to 0.3%": (
        lambda r: [round(f([row["error"] for row in RUN["rows"]]), 3) for f in (min, max)] == [0.002, 0.003], 1, 1),
    "that of PyTorch's two ways is 0.4 to 0.5%": (
        lambda r: [round(f(theirs("error")), 3) for f in (min, max)] == [0.004, 0.005], 1, 1),
    "128 of 192": (lambda r: slots(r, "DeepSeek-like", 4096, 128).useful_share, 128 / 192 - 0.01, 128 / 192 + 0.01),
    "No row is slower than its baselines": (
        lambda r: min(theirs("ratio")), 1, 99),
    "the measured gain is 1.8x at one row per expert": (
        lambda r: [round(narrow(1, *nk), 1) for nk in ((512, 2048), (2048, 512))] == [1.8, 1.8], 1, 1),
    "almost nothing at 16 rows, where looking": (
        lambda r: max(narrow(16, *nk) for nk in ((512, 2048), (2048, 512))), 1.0, 1.17),
}  # fmt: skip
CLAIMS = FORMULAS | EXPERIMENTS | MEASURED


@pytest.mark.parametrize("sentence", CLAIMS)
def test_the_lesson_says_what_its_cells_show(cells, sentence):
    measured, low, high = CLAIMS[sentence]
    assert sentence in PROSE, "the lesson no longer says this; say it anew here or take it out"
    assert low - 1e-9 <= measured(cells) <= high + 1e-9


def test_it_shows_the_run_that_is_kept():
    (shown,) = (cell.text for cell in LESSON.cells if cell.text.startswith("recorded("))
    assert shown == 'recorded("moe_routing")'
    assert any('"results" / "h200.json"' in cell.text for cell in LESSON.cells)
    assert RUN["state"] == "sustained" and "H200" in RUN["machine"]["gpu"]


def test_it_names_who_was_not_there():
    assert set(RUN["absent"]) == {"vLLM", "triton_kernels"}
    assert "vLLM's fused Triton experts and `triton_kernels`" in PROSE


def test_each_test_of_a_layer_is_blind_to_what_the_table_says(cells):
    every = {"border", "inverse", "turned", "sum"}
    assert {name: every - set(noticed) for name, noticed in cells.seen.items()} == {
        "24 tokens, 2 of 6": set(), "one expert per token": {"turned"}, "one token": {"inverse"},
        "all experts alike": {"border", "turned"}, "all logits equal": {"border", "turned"},
    }  # fmt: skip


def test_the_picture_of_histograms_counts_what_the_cell_orders(cells):
    (picture,) = (cell.text for cell in LESSON.cells if "block 0, counts" in cell.text)
    lines = re.findall(r"^(\w[\w, ]*?)  +(\d+) +(\d+) +(\d+) +(\d+)(?:  .*)?$", picture, re.M)
    said = {name: [int(n) for n in numbers] for name, *numbers in lines}
    blocks = [np.bincount(two.ravel(), minlength=4).tolist() for two in cells.chosen.reshape(3, 2, 2)]
    assert [said[f"block {b}, counts"] for b in range(3)] == blocks
    assert said["all blocks"] == cells.found.loads.tolist()
    assert said["in whole tiles"] == np.diff(cells.found.offsets).tolist()
    assert said["first row"] == cells.found.offsets[:-1].tolist()
    assert said["before block 2"] == np.sum(blocks[:2], 0).tolist()
    starts = said["block 2 starts at"]
    for expert in (0, 1, 3):
        assert starts[expert] == min(cells.found.place[4:][cells.chosen[4:] == expert])
    assert starts[1] == 8 and cells.found.place[5, 1] == 9


def test_the_formula_and_the_draw_of_experts_with_work_agree(cells):
    for tokens in (4, 16, 64):
        assert cells.picked(tokens) == pytest.approx(read(tokens, QWEN), rel=0.03)


def test_it_promises_as_many_predictions_as_it_asks():
    asked = sum(cell.text.count("**Predict") for cell in LESSON.cells)
    assert "commit to twelve predictions" in PROSE
    assert asked + sum(bool(cell.shown and cell.shown.predict) for cell in LESSON.cells) == 12


def test_both_simulators_are_asked_in_the_topics_order():
    from widgets.moe_routing import ORDER

    assert tuple(cell.shown.name for cell in LESSON.cells if cell.shown) == ORDER
