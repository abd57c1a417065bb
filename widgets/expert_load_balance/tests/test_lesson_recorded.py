"""What lesson 04 says of the run on two H200s: its sentences stand in it and hold in the rows."""

import json

import pytest

from kernels.expert_load_balance import cases, cost
from kernels.expert_load_balance.tests.recorded_run import RESULTS, RUN, in_parts, row, times
from widgets.tests.lesson_said import lesson, prose

PROSE = prose(lesson("04_expert_load_balance"))
CEILINGS = json.loads((RESULTS.parents[1] / "gemm_tiling" / "results" / "h200.json").read_text())["ceilings"]
AGAIN = json.loads((RESULTS / "h200_x2_again.json").read_text())
SHAPES = MIXTRAL, QWEN, DEEPSEEK = tuple(s.name for s in (cases.MIXTRAL, cases.QWEN, cases.DEEPSEEK))


def gain(shape, skew, placement):
    """Of the skewed step's time."""
    return row(shape, 4096, skew, placement)["us"] / row(shape, 4096, skew)["us"]


def gains(shape):
    kinds = ("greedy", "replicated", "replicated, home first")
    return [gain(shape, skew, how) for skew in cases.SKEWED for how in kinds]


def sent(shape, skew, placement="contiguous"):
    return row(shape, 4096, skew, placement)["sent_mb"]


def slower_than_one(shape):
    return sum(r["speedup"] < 1 for r in RUN["rows"] if r["shape"] == shape and str(r["parts"]) == "1")


def parts(shape, tokens, count):
    return next(
        r["us"]
        for r in RUN["rows"]
        if (r["shape"], r["tokens"]) == (shape, tokens) and str(r["parts"])[0] == str(count)
    )


def predicted(shape, tokens, skew):
    """From two even rows: what a step costs with hardly a token, and what each pick of the busiest device adds."""
    fixed, many = row(shape, 16)["us"], row(shape, tokens)["us"]
    one = row(shape, tokens, skew)
    loads = cases.loads_of_skew(skew, 2 * tokens, one["top_k"], one["experts"])
    return fixed + max(cost.device_loads(loads, cost.contiguous(one["experts"], 2), 2)) * 2 * (
        many - fixed
    ) / sum(loads)


def over_predicted(shape, tokens, skew):
    return row(shape, tokens, skew)["us"] / predicted(shape, tokens, skew)


def stage(shape, name, tokens=4096, skew="even"):
    return row(shape, tokens, skew)["stages_us"][name]


def exchanged(shape):
    """The share of an even step in which rows travel."""
    return (stage(shape, "dispatch") + stage(shape, "return")) / row(shape, 4096)["us"]


def experts_known(shape):
    """Measured over: arithmetic or weights at the same day's rates, and nine passes of plain torch through memory."""
    one = row(shape, 4096)
    rows, inner, hidden = 4096 * one["top_k"], one["intermediate"], one["hidden"]
    weights = cost.expert_memory_bytes(one["experts"] // 2, hidden, inner)
    passes = 2 * rows * (5 * inner + 4 * hidden)
    seconds = max(6 * hidden * inner * rows / CEILINGS["bf16"], weights / CEILINGS["copy"])
    return stage(shape, "experts") * 1e-6 / (seconds + passes / CEILINGS["copy"])


def dispatch_known(shape):
    """Measured over: what it takes with 16 tokens, and the bytes at the best rate of a plain all-to-all."""
    best = max(one["gb_s"] for one in RUN["link"])
    return stage(shape, "dispatch") / (
        stage(shape, "dispatch", 16) + row(shape, 4096)["sent_mb"] / best * 1e3
    )


def plain(size):
    return next(one for one in RUN["link"] if one["bytes"] == size)


CLAIMS = {  # sentence: (what the run says, from, to)
    "A plain all-to-all of 64 KB takes 51 µs": (lambda: plain(2**16)["us"], 50.5, 51.5),
    "With 537 MB, half of which crosses the link, it reaches 293 GB/s": (
        lambda: plain(2**29)["gb_s"],
        292.5,
        293.5,
    ),
    "65% of the datasheet's 450": (lambda: RUN["link_of_datasheet"], 0.645, 0.655),
    "Mixtral-like layers with 4096 tokens reach 1.68x of one GPU": (
        lambda: row(MIXTRAL, 4096)["speedup"],
        1.675,
        1.685,
    ),
    "and the step takes 1.9 ms": (lambda: row(MIXTRAL, 16)["us"], 1850, 1950),
    "a third of a microsecond on the link": (lambda: row(MIXTRAL, 16)["sent_mb"] / 450e3 * 1e6, 0.25, 0.4),
    "With few tokens two GPUs are slower than one": (lambda: row(MIXTRAL, 16)["speedup"], 0.4, 0.95),
    "two GPUs never do noticeably more than one": (
        lambda: max(r["speedup"] for r in RUN["rows"] if r["shape"] == QWEN),
        0.9,
        1.05,
    ),
    "Qwen3-like layers got nothing from the second one": (lambda: slower_than_one(QWEN), 32, 32),
    "1.56x even at 16 tokens": (lambda: row(DEEPSEEK, 16)["speedup"], 1.555, 1.565),
    "each of 256 experts just one of these 256 pairs": (
        lambda: cases.loads_of_skew("even", 32, 8, 256) == (1,) * 256,
        1,
        1,
    ),
    "By Zipf's law 117 experts are read": (
        lambda: sum(load > 0 for load in cases.loads_of_skew("Zipf", 32, 8, 256)),
        117,
        117,
    ),
    "all of them on one rank": (lambda: row(DEEPSEEK, 16, "Zipf")["imbalance"], 2, 2),
    "two GPUs take longer than one, a speed-up of 0.86": (
        lambda: row(DEEPSEEK, 16, "Zipf")["speedup"],
        0.855,
        0.865,
    ),
    "a collapsed router makes the Mixtral-like step 1.85x longer": (
        lambda: times(MIXTRAL, "same few"),
        1.845,
        1.855,
    ),
    "Zipf's law 1.46x": (lambda: times(MIXTRAL, "Zipf"), 1.455, 1.465),
    "one hot expert 1.36x": (lambda: times(MIXTRAL, "one hot"), 1.355, 1.365),
    "faster than predicted, by 28 and": (
        lambda: over_predicted(QWEN, 1024, "Zipf"),
        0.715,
        0.725,
    ),
    "by 28 and 23%": (lambda: over_predicted(QWEN, 1024, "same few"), 0.765, 0.775),
    "wandered between 2.0": (
        lambda: min(row(QWEN, 1024, skew)["us"] for skew in cases.SKEWS),
        1950,
        2050,
    ),
    "between 2.0 and 2.8 ms": (lambda: max(row(QWEN, 1024, skew)["us"] for skew in cases.SKEWS), 2750, 2850),
    "DeepSeek-like, 1024, same few, is 18% faster": (
        lambda: over_predicted(DEEPSEEK, 1024, "same few"),
        0.81,
        0.825,
    ),
    "DeepSeek-like, 4096, Zipf, is 16% slower": (
        lambda: over_predicted(DEEPSEEK, 4096, "Zipf"),
        1.155,
        1.165,
    ),
    "Zipf's groups take it 1.29x as long as even ones": (
        lambda: row(DEEPSEEK, 4096, "Zipf")["one_device_us"] / row(DEEPSEEK, 4096)["one_device_us"],
        1.285,
        1.295,
    ),
    "In the collapsed Mixtral-like step of 10.7 ms": (
        lambda: row(MIXTRAL, 4096, "same few")["us"],
        10650,
        10750,
    ),
    "one rank spends 9.3 in the stage": (lambda: stage(MIXTRAL, "return", 4096, "same few"), 9250, 9350),
    "They cut the skewed steps by 30%, 24% and 45%": (
        lambda: gain(MIXTRAL, "Zipf", "replicated"),
        0.695,
        0.705,
    ),
    "greedy saves 1%, a copy 24%": (lambda: gain(MIXTRAL, "one hot", "replicated"), 0.755, 0.765),
    "24% and 45%": (lambda: gain(MIXTRAL, "same few", "replicated"), 0.545, 0.555),
    "bring every large-expert step back to within 4% of the even one": (
        lambda: max(times(MIXTRAL, skew, "replicated") for skew in cases.SKEWED),
        1.0,
        1.04,
    ),
    "greedy saves 1%": (
        lambda: gain(MIXTRAL, "one hot", "greedy"),
        0.98,
        0.995,
    ),
    "it is enough to separate them": (lambda: gain(MIXTRAL, "same few", "greedy"), 0.545, 0.555),
    "comes down by 23% and no further": (lambda: gain(DEEPSEEK, "Zipf", "replicated"), 0.765, 0.775),
    "1.21x the even step": (lambda: times(DEEPSEEK, "Zipf", "replicated"), 1.205, 1.22),
    "although both ranks then have equal numbers of rows": (
        lambda: row(DEEPSEEK, 4096, "Zipf", "replicated")["imbalance"],
        1.0,
        1.01,
    ),
    "They end between 20% faster": (lambda: min(gains(QWEN)), 0.795, 0.805),
    "20% faster and 22% slower": (lambda: max(gains(QWEN)), 1.215, 1.225),
    "It halves the bytes of the Mixtral-like rows": (
        lambda: sent(MIXTRAL, "Zipf", "replicated, home first") / sent(MIXTRAL, "Zipf", "replicated"),
        0.4,
        0.5,
    ),
    "takes those of the collapsed one to zero": (
        lambda: sent(MIXTRAL, "same few", "replicated, home first"),
        0,
        0,
    ),
    "changes nothing in the time": (
        lambda: gain(MIXTRAL, "same few", "replicated, home first") / gain(MIXTRAL, "same few", "replicated"),
        0.98,
        1.02,
    ),
    "Not one row gained. They take 1.17x": (lambda: min(in_parts(of_tokens())), 1.165, 1.175),
    "1.17x to 3.3x the whole layer's time": (lambda: max(in_parts(of_tokens())), 3.25, 3.35),
    "The DeepSeek-like 5.6 ms": (lambda: row(DEEPSEEK, 1024)["us"], 5550, 5650),
    "became 18.6 in four parts": (lambda: parts(DEEPSEEK, 1024, 4), 18500, 18650),
    "4.1 ms, mostly to read 11.3 GB of weights": (
        lambda: stage(DEEPSEEK, "experts", 1024),
        4050,
        4150,
    ),
    "of which rows travel for 0.8": (
        lambda: stage(DEEPSEEK, "dispatch", 1024) + stage(DEEPSEEK, "return", 1024),
        750,
        850,
    ),
    "The large experts with 4096 tokens lose least, 1.17x": (
        lambda: parts(MIXTRAL, 4096, 2) / row(MIXTRAL, 4096)["us"],
        1.165,
        1.175,
    ),
    "There, 0.8 of": (
        lambda: stage(MIXTRAL, "dispatch") + stage(MIXTRAL, "return"),
        750,
        850,
    ),
    "0.8 of 5.8 ms could be hidden": (lambda: row(MIXTRAL, 4096)["us"], 5750, 5850),
    "explained to 4% (Mixtral-like)": (lambda: experts_known(MIXTRAL), 1.035, 1.045),
    "13% (DeepSeek-like)": (lambda: experts_known(DEEPSEEK), 1.125, 1.135),
    "experts' stage takes twice the known time": (lambda: experts_known(QWEN), 1.9, 2.05),
    "twice the known time, 1.2 ms": (lambda: stage(QWEN, "experts"), 1150, 1250),
    "next to nothing to do, it takes 0.86 ms": (lambda: stage(QWEN, "experts", 16), 855, 865),
    "Some 260": (lambda: min(stage(s, "dispatch", 16) for s in SHAPES), 255, 265),
    "Some 260 to 400 µs pass even with 16 tokens": (
        lambda: max(stage(s, "dispatch", 16) for s in SHAPES),
        390,
        405,
    ),
    "right to 1%": (lambda: dispatch_known(QWEN), 0.99, 1.01),
    "right to 1% for two shapes": (lambda: dispatch_known(DEEPSEEK), 0.99, 1.01),
    "20% short for the Mixtral-like one": (lambda: dispatch_known(MIXTRAL), 1.195, 1.21),
    "the weighted sum (stage `combine`), 1.9 ms of the DeepSeek-like step": (
        lambda: stage(DEEPSEEK, "combine"),
        1850,
        1950,
    ),
    "So read the DeepSeek-like 9.5 ms": (lambda: row(DEEPSEEK, 4096)["us"], 9450, 9550),
    "the layer's dispatch reaches 25, 40": (lambda: row(MIXTRAL, 4096)["link_share"], 0.25, 0.255),
    "25, 40": (lambda: row(QWEN, 4096)["link_share"], 0.39, 0.4),
    "25, 40 and 66% of this rate": (lambda: row(DEEPSEEK, 4096)["link_share"], 0.66, 0.67),
    "With 16 tokens it stays below 1%": (lambda: max(row(s, 16)["link_share"] for s in SHAPES), 0.0, 0.01),
    "whose 34 MB are too few": (lambda: sent(MIXTRAL, "even"), 33.5, 34),
    "34, 67 and 235 MB": (lambda: sent(QWEN, "even"), 66.5, 67.5),
    "Both directions together take 13": (lambda: exchanged(MIXTRAL), 0.125, 0.135),
    "take 13, 31": (lambda: exchanged(QWEN), 0.305, 0.32),
    "13, 31 and 24% of the three even steps": (lambda: exchanged(DEEPSEEK), 0.23, 0.245),
    "(694 TFLOP/s, 293 GB/s) is 2365": (
        lambda: CEILINGS["bf16"] / max(one["gb_s"] for one in RUN["link"]) / 1e9,
        2364,
        2366,
    ),
    "235 MB leave": (lambda: sent(DEEPSEEK, "even"), 234.5, 235.5),
    "makes the DeepSeek-like step take 15.0 ms": (lambda: row(DEEPSEEK, 4096, "Zipf")["us"], 14950, 15050),
    "ms instead of 9.5": (lambda: row(DEEPSEEK, 4096)["us"], 9450, 9550),
    "A collapsed DeepSeek-like router fills the link": (
        lambda: row(DEEPSEEK, 4096, "same few")["link_share"],
        0.9,
        1.05,
    ),
    "an H200 multiplies at 694 TFLOP/s": (lambda: CEILINGS["bf16"] / 1e12, 693, 695),
    "copies 4.27 TB/s": (lambda: CEILINGS["copy"] / 1e12, 4.265, 4.275),
}


def again(shape, tokens=4096, skew="even", parts="1"):
    return next(
        r
        for r in AGAIN["rows"]
        if (r["shape"], r["tokens"], r["skew"], r["placement"], str(r["parts"]))
        == (shape, tokens, skew, "contiguous", parts)
    )


def parts_again(of):
    return [
        r["us"] / again(r["shape"], r["tokens"])["us"] for r in AGAIN["rows"] if str(r["parts"]).endswith(of)
    ]


def travels_ms(shape):
    stages = again(shape)["stages_us"]
    return (stages["dispatch"] + stages["return"]) / 1e3


CLAIMS |= {  # of the second run
    "They take 1.01x": (lambda: min(parts_again("experts")), 1.0, 1.01),
    "to 1.62x the whole layer, where": (lambda: max(parts_again("experts")), 1.615, 1.625),
    "parts of the tokens take 1.13x to": (lambda: min(parts_again("tokens")), 1.125, 1.135),
    "1.13x to 3.3x in this run": (lambda: max(parts_again("tokens")), 3.2, 3.3),
    "with 1024 tokens takes 1.22x": (
        lambda: again(DEEPSEEK, 1024, parts="4 of experts")["us"] / again(DEEPSEEK, 1024)["us"],
        1.21,
        1.22,
    ),
    "time instead of 3.25x": (
        lambda: again(DEEPSEEK, 1024, parts="4 of tokens")["us"] / again(DEEPSEEK, 1024)["us"],
        3.245,
        3.255,
    ),
    "0.6 ms of 5.6 (Mixtral-like)": (lambda: travels_ms(MIXTRAL), 0.55, 0.65),
    "of 5.6 (Mixtral-like)": (lambda: again(MIXTRAL)["us"] / 1e3, 5.55, 5.65),
    "for 2.0 of 9.5 (DeepSeek-like)": (lambda: travels_ms(DEEPSEEK), 1.95, 2.05),
    "of 9.5 (DeepSeek-like)": (lambda: again(DEEPSEEK)["us"] / 1e3, 9.45, 9.55),
    "The traced routing has an imbalance of 1.11": (
        lambda: again(MIXTRAL, skew="traced")["imbalance"],
        1.105,
        1.115,
    ),
    "takes 1.10x the even step": (
        lambda: again(MIXTRAL, skew="traced")["us"] / again(MIXTRAL)["us"],
        1.095,
        1.105,
    ),
    "Trained for balance it takes 1.03x": (
        lambda: again(MIXTRAL, skew="traced, balanced")["us"] / again(MIXTRAL)["us"],
        1.025,
        1.035,
    ),
    "even steps agree to 4%": (
        lambda: max(abs(again(s)["us"] / row(s, 4096)["us"] - 1) for s in (MIXTRAL, DEEPSEEK)),
        0.03,
        0.04,
    ),
    "took 1.9 ms then and 1.2 now": (lambda: again(MIXTRAL, 16)["us"], 1150, 1250),
    "Two rows of the second run show 111%": (
        lambda: again(DEEPSEEK, skew="Zipf")["link_share"],
        1.105,
        1.115,
    ),
    "111% and 114% of the rate": (lambda: again(DEEPSEEK, skew="same few")["link_share"], 1.135, 1.145),
    "Parts of the tokens took 1.13x to 3.3x": (
        lambda: max(parts_again("tokens") + in_parts(of_tokens())),
        3.25,
        3.35,
    ),
    "are level with it": (lambda: again(MIXTRAL, 16)["speedup"], 0.95, 1.1),
}


def test_fourteen_of_eighteen_skewed_rows_are_as_predicted():
    assert "Of the eighteen rows fourteen are within 15%" in PROSE
    far = [
        (shape, tokens, skew)
        for shape in SHAPES
        for tokens in (1024, 4096)
        for skew in cases.SKEWED
        if not 0.85 < over_predicted(shape, tokens, skew) < 1.15
    ]
    assert far == [
        (QWEN, 1024, "Zipf"),
        (QWEN, 1024, "same few"),
        (DEEPSEEK, 1024, "same few"),
        (DEEPSEEK, 4096, "Zipf"),
    ]


def test_the_lesson_dates_the_run_and_counts_its_comparisons():
    assert RUN["date"] == "2026-11-22" and "H200" in RUN["machine"]["gpu"] and RUN["ranks"] == 2
    assert RUN["same_bits"]["compared"] == 80 and AGAIN["same_bits"]["compared"] == 96
    assert "80 ways in the first run on two H200s and 96 in the second, none of which differed" in PROSE


def of_tokens():
    return "tokens" if any(str(r["parts"]).endswith("tokens") for r in RUN["rows"]) else ("2", "4")


@pytest.mark.parametrize("sentence", CLAIMS)
def test_the_run_says_so(sentence):
    measured, low, high = CLAIMS[sentence]
    assert sentence in PROSE, "the lesson no longer says this; say it anew here or take it out"
    assert low <= measured() <= high
