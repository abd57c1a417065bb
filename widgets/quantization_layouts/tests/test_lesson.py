"""What lesson 02 says in words, of its experiments, formulas and tables: its cells are run and its sentences hold."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from kernels.machines import machine
from kernels.quantization_layouts import cost
from widgets.tests.lesson_said import lesson, prose, run_cells

TOPIC = Path(cost.__file__).parent
LESSON = lesson("02_quantization_layouts")
ERRATA = next(page for page in lesson("07_next_bottleneck").pages if page.name.endswith("j_errata"))
PROSE = prose(LESSON) + " " + prose(ERRATA)  # where sources are corrected against themselves
RUN, CALIBRATED = (json.loads((TOPIC / folder / "h200.json").read_text()) for folder in ("results", "tables"))
INT4 = "int4 g128 bf16"
TABLES, CARD, H200 = cost.kbit_tables, machine("RTX 4090"), machine("H200")
WIDE, W4 = (16, None, "bf16"), (4, 128, "bf16")


@pytest.fixture(scope="module")
def ran():
    return run_cells(LESSON)


def gain(ran, m, how):
    return ran.at_best(m, *WIDE) / ran.at_best(m, *how)


def placed(ran, placement, at):
    return ran.paid[placement][at]


def lane_share(name, bits, kind="book"):
    """Unpacking over reading."""
    m = machine(name)
    unpack = cost.unpack_s(8, cost.unpack_per_weight(kind, bits), m.sms, m.clock_hz)
    return unpack * m.bandwidth / bits


def slope(ran, passes, batch):
    given = {"placement": passes, "batch": batch, "tile_rows": 256, **ran.given}
    return cost.payoff(5.2e-3, **given).speedup


def overlap(ran, batch):
    return slope(ran, "asynchronous", batch) / slope(ran, "fused", batch)


def speeds(*names):
    return [cost.best_kernel(name, m)[2] for name, m in TABLES.LARGE_M_US if name in (names or (name,))]


def made_up_for(a, b, c):
    """How much the second of two weights changes when rounding has changed the first by 1."""
    share = np.linalg.cholesky(np.linalg.inv([[a, b], [b, c]])).T
    return share[0, 1] / share[0, 0]


def gptq(ran, inputs, what, by="GPTQ"):
    return ran.gptq[inputs, what][by == "GPTQ"]


def unused_none(bell, bits, group=32):
    """Return the error with 2^bits levels spaced evenly from the largest to its negative."""
    blocks = np.asarray(bell).reshape(-1, group)
    step = 2 * np.abs(blocks).max(1, keepdims=True) / (2**bits - 1)
    rounded = (np.clip(np.floor(blocks / step), -(2 ** (bits - 1)), 2 ** (bits - 1) - 1) + 0.5) * step
    return np.linalg.norm(rounded - blocks) / np.linalg.norm(blocks)


def scales_of_others(outputs=256, groups=8, group=128):
    """Return the error of a layer of a bell's weights whose scales were left out of Marlin's order."""
    draws = np.random.default_rng(0)
    w = draws.standard_normal((outputs, groups, group))
    scales = np.abs(w).max(-1, keepdims=True) / 7
    order = [i + 8 * j for i in range(8) for j in range(8)]
    moved = scales.reshape(-1, 64, groups, 1)[:, order].reshape(scales.shape)
    right, wrong = np.rint(w / scales) * scales, np.rint(w / scales) * moved
    return np.linalg.norm(wrong - right) / np.linalg.norm(right)


FORMULAS = {  # a sentence of the lesson: (what it speaks of, from, to)
    "At M = 256 and above, the limit is arithmetic. W4A16 and W8A16 save nothing": (lambda r: gain(r, 256, W4), 1, 1.0001),
    "Its own numbers give two": (lambda r: cost.devices_needed(35e9, CARD.memory_bytes), 2, 2),
    "six cards for 16 bits, because a card holds only 24 GB": (lambda r: cost.devices_needed(140e9, CARD.memory_bytes), 6, 6),
    "At batch 1, fused or asynchronous unpacking eats about a tenth of the saving": (
        lambda r: max(abs(placed(r, p, 0).eaten - 0.1) for p in ("fused", "asynchronous")), 0, 0.01),
    "a separate kernel eats more than was saved": (lambda r: placed(r, "separate", 0).eaten, 1, 9),
    "At batch 64 all placements but the separate kernel still win": (
        lambda r: min(placed(r, p, 1).speedup for p in ("exposed", "fused", "asynchronous")), 1.01, 4),
    "At batch 256 all four lose": (lambda r: max(placed(r, p, 2).speedup for p in cost.PLACEMENTS), 0, 0.99),
    "With groups of 16 the scales add a whole bit": (lambda r: cost.bits_per_weight(4, 16) - 4, 1, 1),
    "then each weight takes 8 bits": (lambda r: cost.bits_per_weight(4, 4), 8, 8),
    "8 bits have 17 times as many levels as 4 bits": (lambda r: 255 / 15, 17, 17),
    "3 instructions per weight": (lambda r: cost.unpack_per_weight("book", 4), 3, 3),
    "four subtractions for eight codes, 1.4 instructions per weight": (lambda r: (4 + 3 + 4) / 8, 1.35, 1.4),
    "one FMA with 1/16 and −72 turns them into weights": (
        lambda r: max(abs((1024 + 16 * c) / 16 - 72 - (c - 8)) for c in range(16)), 0, 0),
    "128 + 16 · 15 needs eight bits of mantissa": (lambda r: 16 * 15, 2**7, 2**8 - 1),
    "Half of the weights still arrive": (lambda r: 128 / 256, 0.5, 0.5),
    "With 160 whole tiles 39% of the SMs' time is wasted": (lambda r: 1 - r.tile_rows[2][2], 0.385, 0.395),
    "and with stream-K almost none": (lambda r: 1 - r.tile_rows[2][4], 0, 0.02),
    "the outputs are off by about a sixth": (lambda r: scales_of_others(), 0.15, 0.19),
    "Sorting W but not X causes the larger error, 127%": (lambda r: r.repack_rows[1][1], 1.265, 1.275),
    "127% instead of 102%": (lambda r: r.repack_rows[2][1], 1.015, 1.025),
    "Both mistakes destroy the layer": (lambda r: min(error for _, error in r.repack_rows[1:]), 0.9, 2),
    "the error of int8 with a scale per row is four times as large": (
        lambda r: r.both_rows[2][1] / r.both_rows[0][1], 3.5, 4.2),
    "formats are five to seven times as large as FP8's": (
        lambda r: (r.both_rows[3][1] - r.both_rows[4][1]) / r.both_rows[0][1] + 7, 5, 7),
    "With new codes the error grows by a quarter": (lambda r: r.power_rows[1][1] / r.power_rows[0][1], 1.2, 1.3),
    "With the same codes the outputs are off by 78%": (lambda r: r.power_rows[2][1], 0.775, 0.785),
    "every block is too large by a factor between 1 and 2": (lambda r: r.power_rows[2][1], 0.01, 1),
    "Mixing all channels halves its error": (lambda r: r.rotated["int4"][2] / r.rotated["int4"][0], 0.48, 0.52),
    "MXFP4's error falls by a fifth": (lambda r: 1 - r.rotated["mxfp4"][1] / r.rotated["mxfp4"][0], 0.18, 0.22),
    "NVFP4 and FP8 gain nothing, and their errors even grow a little": (
        lambda r: min(r.rotated[form][2] / r.rotated[form][0] for form in ("nvfp4", "fp8")), 1.01, 1.2),
    "the seven shifts and AND-ORs for eight codes": (lambda r: 7 / 8 - cost.unpack_per_weight("int4", 4), -0.05, 0.05),
    "the mantissa trick int4 takes 0.9 integer instructions per weight": (lambda r: cost.unpack_per_weight("int4", 4), 0.9, 0.9),
    "In every row, the RTX 4090 spends at least twice as long on reading as on unpacking": (
        lambda r: max(lane_share("RTX 4090", k) for k in TABLES.BITS), 0, 0.5),
    "every codebook takes longer to unpack than to read": (
        lambda r: min(lane_share("H200", k) for k in TABLES.BITS), 1.01, 9),
    "Only with int4 and its 0.9 instructions per weight does the stream remain the limit": (lambda r: lane_share("H200", 4, "int4"), 0, 0.99),
    "which has a fifth of the bandwidth": (lambda r: CARD.bandwidth / H200.bandwidth, 0.19, 0.22),
    "39 of 40 instructions only unpack": (lambda r: cost.instruction_share(39), 0.025, 0.025),
    "The overlap gains the most between 64 and 128 rows": (
        lambda r: min(overlap(r, b) for b in (64, 128)) - max(overlap(r, b) for b in (16, 256, 512)), 0.1, 1),
    "so the asynchronous kernel is only as fast as a 16-bit kernel": (lambda r: slope(r, "asynchronous", 512), 0.99, 1.01),
    "and the fused kernel is slower": (lambda r: slope(r, "fused", 512), 0, 0.95),
    "70B: 328 KB, 164 KB in 8 bits": (lambda r: cost.kv_bytes_per_token(80, 8, 128) / 1e3, 327.5, 328.5),
    "0.3% of the weights": (lambda r: r.thin / 70e9, 0.0025, 0.0035),
    "takes 40 GB of memory instead of over 1,000 GB": (lambda r: (r.frozen + r.states * r.thin) / 1e9, 39.5, 41),
    "In fp32 none of the three networks fits into 1 MB": (lambda r: cost.model_bytes(0.47e6, 32) / 1e6, 1.01, 9),
    "In 8 bits the quarter-width network fits": (lambda r: cost.model_bytes(0.47e6, 8) / 1e6, 0, 1),
    "in 4 bits so does the half-width network": (lambda r: cost.model_bytes(1.3e6, 4) / 1e6, 0, 1),
}  # fmt: skip

EXPERIMENTS = {
    "A zero point more than halves their error": (
        lambda r: r.zero_point["all positive"][1] / r.zero_point["all positive"][0], 0, 0.5),
    "For the bell the error shrinks by a seventh": (
        lambda r: 1 - r.zero_point["bell"][1] / r.zero_point["bell"][0], 0.125, 0.16),
    "85% of them become zero": (lambda r: r.outlier["all"][0], 0.845, 0.855),
    "an error of 78%": (lambda r: r.outlier["all"][1], 0.775, 0.785),
    "also reduce the error in all other rows": (lambda r: r.outlier["a row"][1] / r.outlier["128"][1], 1.2, 2),
    "The errors of NVFP4 and int4 are almost equal": (lambda r: r.micro_error["nvfp4"] / r.micro_error["int4"], 0.95, 1.05),
    "MXFP4's error is a fifth larger than either": (lambda r: r.micro_error["mxfp4"] / r.micro_error["int4"], 1.15, 1.25),
    "is a fifth larger than either": (lambda r: r.micro_error["mxfp4"] / r.micro_error["nvfp4"], 1.15, 1.25),
    "The error of int4 falls by a tenth": (lambda r: 1 - [*r.chosen_scale.values()][0], 0.085, 0.115),
    "the choice between the two scales reduces the error by 8%": (lambda r: 1 - [*r.chosen_scale.values()][1], 0.075, 0.085),
    "From 7 to 8 bits the number of levels doubles and the error halves": (lambda r: r.by_bits[7] / r.by_bits[8], 1.95, 2.05),
    "From 2 to 3 bits the error shrinks 2.9x": (lambda r: r.by_bits[2] / r.by_bits[3], 2.85, 2.95),
    "going from 4 to 3 bits costs more accuracy than going from 5 to 4 bits": (
        lambda r: r.by_bits[3] / r.by_bits[4] - r.by_bits[4] / r.by_bits[5], 0.05, 1),
    "At 2 bits the error is a third smaller with the codebook": (lambda r: 1 - r.by_book[2] / r.by_bits[2], 0.3, 0.37),
    "at 4 bits it is a tenth smaller": (lambda r: 1 - r.by_book[4] / r.by_bits[4], 0.08, 0.13),
    "the errors at 2, 3, 4 and 5 bits would be 45%, 19%, 9.0% and 4.4%": (
        lambda r: max(abs(unused_none(r.bell, k) - said) / said
                      for k, said in zip((2, 3, 4, 5), (0.45, 0.19, 0.09, 0.044), strict=True)), 0, 0.012),
    "At 5 bits even spacing is better": (lambda r: r.by_book[5] / r.by_bits[5], 1.02, 1.2),
    "The error falls by a factor of 6.4": (lambda r: r.naive / r.decomposed, 6.35, 6.45),
    "only 0.6% of the channels are in 16 bits": (lambda r: r.out.mean(), 0.0055, 0.0065),
    "The best α is ½. With it, activations and weights are equally hard": (lambda r: min(r.smooth, key=r.smooth.get), 0.5, 0.5),
    "the error is a third of the error without smoothing": (lambda r: r.naive / r.smooth[0.5], 2.9, 3.2),
    "nearly halves the error": (lambda r: r.kept_wide / r.plain, 0.5, 0.6),
    "keeping three other columns in 16 bits does nothing": (lambda r: r.kept_wrong / r.plain, 0.98, 1.01),
    "The best factor achieves two thirds of the gain from 16-bit columns": (
        lambda r: (r.plain - min(r.awq.values())) / (r.plain - r.kept_wide), 0.62, 0.73),
    "With too large a factor, the three columns become outliers": (lambda r: r.awq[1] / r.plain, 1.5, 4),
    "GPTQ more than halves the error of the outputs compared with rounding": (
        lambda r: gptq(r, "correlated", "calibration inputs", "rounding") / gptq(r, "correlated", "calibration inputs"), 2, 3),
    "even for inputs that GPTQ never saw": (
        lambda r: gptq(r, "correlated", "fresh inputs", "rounding") / gptq(r, "correlated", "fresh inputs"), 2, 3),
    "The weights themselves are worse": (
        lambda r: gptq(r, "correlated", "the weights") / gptq(r, "correlated", "the weights", "rounding"), 1.1, 2),
    "which is smallest at d = −e b / c": (lambda r: made_up_for(2.0, 1.0, 3.0) - -1.0 / 3.0, 0, 0),
    "The outputs for fresh inputs improve less than those for the calibration inputs": (
        lambda r: gptq(r, "correlated", "fresh inputs") / gptq(r, "correlated", "calibration inputs"), 1.03, 1.5),
    "With independent channels, the outputs for fresh inputs even get worse": (
        lambda r: gptq(r, "independent", "fresh inputs") / gptq(r, "independent", "fresh inputs", "rounding"), 1.02, 1.3),
    "In 8 bits the error is then a fifth of the error with one scale per token": (
        lambda r: r.cache["keys", 8, "a token"] / r.cache["keys", 8, "a channel"], 5, 6),
    "it falls from 69%": (lambda r: r.cache["keys", 4, "a token"], 0.685, 0.695),
    "so for them one scale per token is a little better": (
        lambda r: r.cache["values", 4, "a token"] / r.cache["values", 4, "a channel"], 0.7, 0.95),
    "quantizing either the keys or the values to 8-bit integers changes the output by less than 1%": (
        lambda r: max(r.cache["keys", 8, "a channel"], r.cache["values", 8, "a token"]), 0, 0.01),
    "In 4 bits, quantizing the values causes an error of 11% here": (lambda r: r.cache["values", 4, "a token"], 0.105, 0.115),
    "in 4 bits it falls from 69% to 16%": (lambda r: r.cache["keys", 4, "a channel"], 0.155, 0.165),
    "With the true slope nothing ever moves": (lambda r: np.ptp(r.true_slope), 0, 0),
    "the error falls from 44%": (lambda r: r.pretended[0], 0.435, 0.445),
    "to under 32%": (lambda r: min(r.pretended), 0.31, 0.32),
    "but it doesn't stay that low": (lambda r: r.pretended[-1] / min(r.pretended), 1.02, 1.3),
}  # fmt: skip

READ = {  # of the source's tables
    "Q loses at 4 and 5 bits": (lambda r: cost.shape_speedups("Q")[4], 0, 0.99),
    "Experts at M = 1 are about as fast": (lambda r: cost.shape_speedups("moe_dn")[4], 1, 1.1),
    "At 64 rows and above, the packed weights always lose": (lambda r: max(speeds()), 0.1, 0.95),
    "and the speed relative to fp16 climbs from": (lambda r: float(np.diff(speeds("gateup")).min()), 0.1, 1),
    "The grouped scalar GEMV wins in one row of the table, by 0.3 µs": (
        lambda r: sum(min(us, key=us.get) == "grouped scalar GEMV" for us in TABLES.GROUPED_US.values()), 1, 1),
    "87% of the time goes to the scalar kernel": (lambda r: "(87%)" in TABLES.USERS[1][1], 1, 1),
    "64 users: 98% of the time goes to dequant + library": (lambda r: "(98%)" in TABLES.USERS[64][1], 1, 1),
    "as fast as one with fp16 weights at 16 users, and takes 23% more time at 64": (lambda r: cost.user_ratio(64), 1.23, 1.23),
}  # fmt: skip


def timed(case):
    return next(row for row in RUN["rows"] if row["case"] == case)


def ahead(case, peer="cuBLAS 16 bits"):
    return timed(case)["peers"][peer]["ratio"]


def stored(m, form):
    """How many times as long the kernel takes that reads the bytes in a checkpoint's order."""
    return ahead(f"{m} x {LARGE} {form}", "our kernel, as stored")


def calibrated(form, m, n=28672, k=8192):
    """The dispatcher's row for weights in the groups that the lesson times: 128 for int4, 32 for codebooks."""
    group = 128 if form == "int4" else 32
    rows = (
        row
        for row in CALIBRATED["rows"]
        if place(row) == (n, k, form, m) and row.get("group", group) == group
    )
    (row,) = (row for row in rows if row["experts"] == 1)
    return row


def large(form):
    return calibrated(form, 1)["us"][calibrated(form, 1)["best"]]


def block(m):
    return cost.block_speedup(4, m, cost.measured("H200"))


def place(row):
    return row["n"], row["k"], row["form"], row["m"]


BIG, GATEUP4, KV4 = f"28672 x 8192 {INT4}", "5120 x 2048 k4 b32 fp16", "512 x 2048 k4 b32 fp16"
ZERO, LARGE = "1 x 28672 x 8192 int4 g32 zero fp16", "28672 x 8192"
MEASURED = {  # of our own kernels on an H200, in words that no number fills in
    "For up to four rows, the fastest kernel here is one that uses `mma`": (
        lambda r: not any("ring" in calibrated("int4", m)["best"] for m in (1, 2, 4)), 1, 1),
    "For eight or more rows, it is a pipeline for Hopper, called ring in the appendix": (
        lambda r: all("ring" in calibrated("int4", m)["best"] for m in (8, 16, 32, 64)), 1, 1),
    "the dispatcher chooses the 16-bit kernel, because 256 rows are past the ridge": (
        lambda r: timed(f"256 x {BIG}")["kernel"] == "16 bits", 1, 1),
    "All four are slower than int4": (lambda r: min(large(f"k{k}") for k in TABLES.BITS) / large("int4"), 1.01, 9),
    "but almost none of the gain over 16 bits is left": (lambda r: large("k5") / 114, 0.96, 1),
    "the kernel reads only a third of the bytes": (lambda r: cost.bits_per_weight(5, 32) / 16, 0.33, 0.35),
    "so cuBLAS's kernel spends even more time on start and end than ours": (
        lambda r: (timed(f"1 x {KV4}")["us"] * ahead(f"1 x {KV4}") - 2e6 * 512 * 2048 / H200.bandwidth) / timed(f"1 x {KV4}")["us"],
        1.2, 4),
    "an SM holds three programs instead of two": (lambda r: 65536 // (168 * 128), 3, 3),
    "about as long as with 16-bit weights. It needs no more look-ups than with one row": (lambda r: ahead(f"16 x {GATEUP4}"), 0.99, 1.04),
    "At 64 rows the 4-bit codebook (k = 4) is as fast as cuBLAS in 16 bits on most shapes": (
        lambda r: sum(timed(f"64 x {n} x {k} k4 b32 fp16")["kernel"] == "16 bits"
                      for name, (n, k) in TABLES.SHAPES.items() if name not in TABLES.MOE), 4, 5),
    "a third longer than with groups of 128 and no zero points": (lambda r: timed(ZERO)["us"] / timed(f"1 x {BIG}")["us"], 1.3, 1.36),
    "85% to 95% of the speed that the bytes allow": (
        lambda r: min(timed(f"{m} x {LARGE} {form}")["share"] for m in (1, 64) for form in ("w8a8", "fp8")), 0.85, 0.95),
    "where our kernel for the checkpoint's order is slower than cuBLAS in 16 bits": (lambda r: ahead(f"64 x {LARGE} w8a16") / stored("64", "w8a16"), 0.5, 0.97),
    "Repacking speeds W8A16 up only a little for one": (lambda r: stored("1", "w8a16"), 1.02, 1.15),
    "worth a fifth of the speed": (lambda r: 1 - block(64), 0.18, 0.23),
}  # fmt: skip
CLAIMS = FORMULAS | EXPERIMENTS | READ | MEASURED


@pytest.mark.parametrize("sentence", CLAIMS)
def test_the_lesson_says_what_its_cells_show(ran, sentence):
    measured, low, high = CLAIMS[sentence]
    assert sentence in PROSE, "the lesson no longer says this; say it anew here or take it out"
    assert low - 1e-9 <= measured(ran) <= high + 1e-9


def test_each_test_of_a_layout_is_blind_to_what_the_table_says(ran):
    every = {"order", "group", "zero", "signed"}
    blind = {name: every - set(noticed) for name, noticed in ran.seen.items()}
    assert blind == {
        "random weights": set(), "K = 64, one group": {"group"}, "X all ones": {"order"},
        "all weights 0.7": {"order", "group"}, "weights -1 and 1": {"group", "zero"},
    }  # fmt: skip


def test_the_picture_of_a_fragment_is_the_one_that_weights_are_packed_for():
    torch = pytest.importorskip("torch")
    from kernels.quantization_layouts.packed import shuffle

    (picture,) = (cell.text for cell in LESSON.cells if "holds each element of the 16 × 16 tile" in cell.text)
    rows = re.findall(r"^(row [ 0-9]+?)  ((?:[ |]*\d+){16})$", picture, re.M)
    assert [label.split() for label, _ in rows] == [["row", "0"], ["row", "1"], ["row", "7"]]
    for label, said in rows:
        for column, lane in enumerate(map(int, re.findall(r"\d+", said))):
            for row in (int(label.split()[1]), int(label.split()[1]) + 8):
                codes = torch.zeros((1, 16, 64), dtype=torch.uint8)
                codes[0, row, column] = 15
                (words,) = shuffle(codes, 4, False)
                assert [int(at[-2]) for at in words.nonzero()] == [lane], (row, column)


def test_a_code_in_a_mantissa_is_1024_more(ran):
    assert (ran.held == 1024 + ran.code).all() and ran.held.dtype == np.float16
    assert (ran.held - np.float16(1032) == ran.code.astype(float) - 8).all()


def test_the_lesson_names_who_was_not_there():
    assert 'recorded("quantization_layouts")' in [cell.text.strip() for cell in LESSON.cells]
    assert set(RUN["absent"]) == {"bitsandbytes"} and RUN["state"] == "sustained"
    assert "bitsandbytes was not installed." in PROSE
    large = {
        one["case"].split(" ")[0]: one["peers"]
        for one in RUN["rows"]
        if "28672 x 8192 int4 g128" in one["case"]
    }
    assert large["1"]["Marlin"]["ratio"] > 1 and large["64"]["Machete"]["ratio"] > 1
    assert large["256"]["Machete"]["ratio"] < 1, "and there it is ahead"


def test_it_promises_as_many_predictions_as_it_asks():
    asked = sum(cell.text.count("**Predict") for cell in LESSON.cells)
    assert "make twenty-eight predictions" in PROSE
    assert asked + sum(bool(cell.shown and cell.shown.predict) for cell in LESSON.cells) == 28


def test_all_five_simulators_are_asked_in_the_topics_order():
    from widgets.quantization_layouts import ORDER

    assert tuple(cell.shown.name for cell in LESSON.cells if cell.shown) == ORDER
