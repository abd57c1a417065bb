"""What lesson 03 says of its experiments, and words such as "nearly": its cells are run, its sentences are there and hold."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from kernels.machines import machine
from kernels.moe_routing import cost, reference
from kernels.moe_routing.routed import cut
from widgets.tests.lesson_said import lesson, prose, run_cells

KERNELS = Path(cost.__file__).parents[1]
RUN = json.loads((KERNELS / "moe_routing/results/h200.json").read_text())
LESSON = lesson("03_moe_routing")
PAGES = {page.name.partition("/")[2]: page for page in LESSON.pages}
PROSE, H200 = prose(LESSON), machine("H200")
QWEN, DEEPSEEK = "Qwen3-like", "DeepSeek-like"


@pytest.fixture(scope="module")
def cells():
    return {name: run_cells(page) for name, page in PAGES.items() if name != "review"}


def slots(b, name, tile):
    return b.useful[name, 4096][tile]


def slots_multiplied(tile):
    """Rows of an expert of DeepSeek's, padded to tiles, where the choice is biased as in the run."""
    rng = np.random.default_rng(0)
    rule = reference.Rule(8, "sigmoid", renormalise=True, groups=8, groups_kept=4)
    topk_ids, _ = reference.route(rng.standard_normal((4096, 256)), rule, 0.01 * rng.random(256))
    return tile * cost.tile_utilization(reference.count(topk_ids, 256), tile).tiles / 256


SAID = {  # a sentence: its page, what it speaks of, from, to
    "The choice is the same": (
        "a_experts", lambda r: len({tuple(topk_ids[0]) for topk_ids, _ in r.weighed.values()}), 1, 1),
    "The weights are the same, too, once the first rule divides them by their sum": (
        "a_experts", lambda r: np.ptp([r.weighed[name][1] for name in list(r.weighed)[:3:2]], 0).max(), 0, 1e-9),
    "Only 13% of the tokens keep all eight experts": ("a_experts", lambda r: np.mean(r.kept == 8), 0.125, 0.135),
    "only 0.6% of the score is lost": ("a_experts", lambda r: 1 - r.worth[1] / r.worth[0], 0.0055, 0.0065),
    "Four in a hundred of these random tokens": ("a_experts", lambda r: r.other, 0.035, 0.045),
    "until, at about 64 tokens, nearly all experts are read": (
        "a_experts", lambda r: cost.expected_experts(64, 8, 128) / 128, 0.98, 0.99),
    "256 blocks of 16 tokens": (
        "b_order_and_tiles", lambda r: 4096 / cut(4096, 2048, 128, True).block, 256, 256),
    "Expert 1 has six pairs and gets two tiles. Expert 2 has no pair and gets no tile": (
        "b_order_and_tiles",
        lambda r: (*r.order.loads[1:3], list(r.order.expert_ids).count(1)) == (6, 0, 2), 1, 1),
    "so their pairs with it get rows 8 and 9": (
        "b_order_and_tiles", lambda r: (r.order.inv_permuted_idx[4, 0], r.order.inv_permuted_idx[5, 1]) == (8, 9), 1, 1),
    "67%, not 100": ("b_order_and_tiles", lambda r: slots(r, DEEPSEEK, 128).useful_share, 0.665, 0.675),
    "192 slots, of which 128 are useful": (
        "b_order_and_tiles", lambda r: slots(r, DEEPSEEK, 128).useful_share, 128 / 192 - 0.01, 128 / 192 + 0.01),
    "A tile of 192 rows has room for all the rows of nearly every expert": (
        "b_order_and_tiles", lambda r: slots(r, DEEPSEEK, 192).tiles / 256, 1, 1.02),
    "The layer then takes about as many slots as with tiles of 128 rows": (
        "b_order_and_tiles", lambda r: slots(r, DEEPSEEK, 192).slots / slots(r, DEEPSEEK, 128).slots, 0.97, 1.03),
    "but reads each weight once instead of 1.5 times": (
        "b_order_and_tiles", lambda r: slots(r, DEEPSEEK, 128).tiles / 256, 1.45, 1.55),
    "for Qwen's shape 9% of the slots are useful with the shortest tiles": (
        "b_order_and_tiles", lambda r: r.useful[QWEN, 16][16].useful_share, 0.085, 0.095),
    "and 1% with the tallest": ("b_order_and_tiles", lambda r: r.useful[QWEN, 16][192].useful_share, 0.005, 0.015),
    "With 4096 tokens of Qwen's shape and tiles of 128, padding takes 19% of the slots": (
        "b_order_and_tiles", lambda r: 1 - slots(r, QWEN, 128).useful_share, 0.185, 0.195),
    "10% if the kernel skips empty halves of 64 rows": (
        "b_order_and_tiles", lambda r: 1 - slots(r, QWEN, 64).useful_share, 0.095, 0.105),
    "80% at 256 rows, tile 128 (81% in a random draw)": (
        "b_order_and_tiles", lambda r: slots(r, QWEN, 128).useful_share, 0.805, 0.815),
    "a factor of 1 drops 2.6% of the pairs by chance alone": ("b_order_and_tiles", lambda r: r.dropped[0.0, 1.0], 0.0255, 0.0265),
    "and a factor of 1.25 drops none": ("b_order_and_tiles", lambda r: r.dropped[0.0, 1.25], 0, 0),
    "even a factor of 2.0 drops 8%": ("b_order_and_tiles", lambda r: r.dropped[0.5, 2.0], 0.075, 0.085),
    "About half of the sums differ": ("c_kernel_and_combine", lambda r: r.differ["fp32"], 0.45, 0.55),
    "in fp32 as in bf16": ("c_kernel_and_combine", lambda r: r.differ["bf16 throughout"], 0.45, 0.55),
    "only 50 in a million still differ": (
        "c_kernel_and_combine", lambda r: 1e6 * r.differ["fp32, rounded to bf16 at the end"], 45, 55),
    "so some 400 elements differ": (
        "c_kernel_and_combine", lambda r: 4096 * 2048 * r.differ["fp32, rounded to bf16 at the end"], 380, 420),
    "moves nearly as many bytes as reading the weights": (
        "c_kernel_and_combine",
        lambda r: sum(r.steps.values()) / cost.layer_cost(4096, 8, 128, 2048, 768).weight_bytes, 0.9, 1),
    "nearly two thirds of all experts are read": (
        "d_measured", lambda r: cost.expected_experts(16, 8, 128) / 128, 0.63, 0.66),
    "At 128 users all experts are read, and the caches are nearly as large as the experts": (
        "d_measured", lambda r: r.layer_bytes(128)[2] / r.layer_bytes(128)[0], 0.85, 0.95),
    "The experts' share is largest at 16 users": (
        "d_measured",
        lambda r: max((1, 4, 16, 64, 128), key=lambda n: r.layer_bytes(n)[0] / sum(r.layer_bytes(n))), 16, 16),
    "It saves less than a thousandth of the layer's bytes": (
        "d_measured", lambda r: 2 * 4096 * 128 / r.layer_bytes(4096)[0], 0.0005, 0.001),
    "A mixture holds 4 to 32 times the weights": ("d_measured", lambda r: (8 / 2, 256 / 8) == (4, 32), 1, 1),
    "At 16 tokens the bias makes the share 1.15x as large, and at 256 tokens 1.16x as large, because the limit counts": (
        "appendix", lambda r: [round(r.claimed[0.2, t], 2) for t in (16, 256)] == [1.15, 1.16], 1, 1),
    "which moves the share by less than one percent": (
        "appendix", lambda r: max(abs(r.claimed[0.01, t] - 1) for t in (16, 256)), 0, 0.01),
    "each expert's rows are padded to a multiple of 64, or 160 slots on average": ("appendix", lambda r: slots_multiplied(64), 157, 163),
    "A tile of 192 rows holds all the rows of nearly any expert, so nearly every expert's": (
        "appendix", lambda r: slots_multiplied(192) / 192, 1, 1.05),
}  # fmt: skip


@pytest.mark.parametrize("sentence", SAID)
def test_the_lesson_says_what_its_cells_show(cells, sentence):
    page, measured, low, high = SAID[sentence]
    assert sentence in PROSE, "the lesson no longer says this; say it anew here or take it out"
    assert low - 1e-9 <= measured(cells[page]) <= high + 1e-9


def test_words_about_the_run_hold_in_its_rows():
    rows = {row["case"]: row for row in RUN["rows"]}
    ratios = {
        case: {name: p["ratio"] for name, p in row["peers"].items() if "ratio" in p}
        for case, row in rows.items()
    }
    assert "Our layer is faster than all three baselines in every case" in PROSE
    assert min(min(one.values()) for one in ratios.values()) > 1
    assert "No other case is further from its limit" in PROSE
    assert min(rows, key=lambda case: rows[case]["share"]) == "Qwen3-like top-8 T = 1"
    assert "and beats `grouped_mm`" in PROSE
    mixtral = [one for case, one in ratios.items() if case.startswith("Mixtral")]
    assert all(one["torch loop"] < one["torch grouped_mm"] for one in mixtral)
    assert RUN["state"] == "sustained" and "H200" in RUN["machine"]["gpu"]


def test_words_about_vllm_hold_in_its_rows():
    theirs = {row["case"]: row["peers"]["vLLM"]["ratio"] for row in RUN["rows"]}
    assert "Where reading weights takes most of the time, vLLM's layer is as good as ours" in PROSE
    assert all(1 < theirs[f"{model} T = 16"] < 1.04 for model in ("Mixtral top-2", "DeepSeek-like top-8"))
    assert "It falls behind at 4096 tokens" in PROSE and "and with one token" in PROSE
    assert theirs["Qwen3-like top-8 T = 1"] == max(theirs.values()) > 1.4
    assert all(one > 1.15 for case, one in theirs.items() if case.endswith("T = 4096"))


def test_it_names_who_was_not_there():
    assert set(RUN["absent"]) == {"triton_kernels"}
    assert "OpenAI's `triton_kernels` couldn't be imported" in PROSE


def test_each_test_of_a_layer_is_blind_to_what_the_table_says(cells):
    every = {"border", "inverse", "turned", "sum"}
    seen = cells["d_measured"].seen
    assert {name: every - set(noticed) for name, noticed in seen.items()} == {
        "24 tokens, 2 of 6": set(), "one expert per token": {"turned"}, "one token": {"inverse"},
        "all experts alike": {"border", "turned"}, "all logits equal": {"border", "turned"},
    }  # fmt: skip


def test_the_picture_of_histograms_counts_what_the_cell_orders(cells):
    (picture,) = (cell.text for cell in LESSON.cells if "block 0, counts" in cell.text)
    lines = re.findall(r"^(\w[\w, ]*?)  +(\d+) +(\d+) +(\d+) +(\d+)(?:  .*)?$", picture, re.M)
    said = {name: [int(n) for n in numbers] for name, *numbers in lines}
    topk_ids, order = cells["b_order_and_tiles"].topk_ids, cells["b_order_and_tiles"].order
    blocks = [np.bincount(two.ravel(), minlength=4).tolist() for two in topk_ids.reshape(3, 2, 2)]
    assert [said[f"block {b}, counts"] for b in range(3)] == blocks
    assert said["all blocks"] == order.loads.tolist()
    assert said["in whole tiles"] == np.diff(order.expert_offsets).tolist()
    assert said["first row"] == order.expert_offsets[:-1].tolist()
    assert said["before block 2"] == np.sum(blocks[:2], 0).tolist()
    starts = said["block 2 starts at"]
    for expert in (0, 1, 3):
        assert starts[expert] == min(order.inv_permuted_idx[4:][topk_ids[4:] == expert])
    assert starts[1] == 8 and order.inv_permuted_idx[5, 1] == 9


def test_the_formula_and_the_draw_of_experts_with_work_agree(cells):
    for tokens in (4, 16, 64):
        expected = cost.expected_experts(tokens, 8, 128)
        assert cells["a_experts"].picked(tokens) == pytest.approx(expected, rel=0.03)


def test_both_simulators_are_asked_in_the_topics_order():
    from widgets.moe_routing import ORDER

    assert tuple(cell.shown.name for cell in LESSON.cells if cell.shown) == ORDER
