"""Hold measured tables of "k-bit deployment", from one RTX 4090, CUDA events, microseconds.

Bits 16 means fp16. `n` is the output width, `k` the inner width of a weight matrix.
"""

SOURCE = "k-bit deployment"
MACHINE = "RTX 4090"
BITS = (2, 3, 4, 5)
DENSE = ("gateup", "down", "Q", "O", "KV")
MOE = ("moe_gu", "moe_dn")  # 8 experts in one grouped launch
MOE_EXPERTS = 8

SHAPES = {  # name -> (n, k)
    "gateup": (5120, 2048),
    "down": (2048, 5120),
    "Q": (4096, 2048),
    "O": (2048, 4096),
    "KV": (512, 2048),
    "moe_gu": (512, 2048),
    "moe_dn": (2048, 512),
}


def _rows(*rows):
    return {name: dict(zip((*BITS, 16), us, strict=True)) for name, *us in rows}


BEST_US = {  # M -> shape -> bits -> microseconds of the best kernel
    1: _rows(
        ("gateup", 9.5, 10.8, 13.0, 14.4, 19.1),
        ("down", 10.2, 11.6, 13.1, 14.4, 19.1),
        ("Q", 8.7, 9.6, 11.2, 12.4, 10.7),
        ("O", 8.0, 9.1, 10.2, 11.1, 15.8),
        ("KV", 3.5, 3.7, 4.3, 4.1, 10.9),
        ("moe_gu", 9.0, 10.2, 11.3, 12.7, 11.7),
        ("moe_dn", 8.9, 10.7, 12.1, 13.1, 13.1),
    ),
    4: _rows(
        ("gateup", 15.8, 17.3, 18.8, 19.4, 21.9),
        ("down", 11.0, 12.5, 14.2, 15.8, 16.2),
        ("Q", 9.3, 10.5, 12.0, 13.6, 12.7),
        ("O", 9.7, 10.8, 12.4, 13.7, 29.1),
        ("KV", 4.9, 4.9, 5.0, 5.4, 15.7),
        ("moe_gu", 9.3, 10.9, 11.9, 13.2, 18.9),
        ("moe_dn", 9.2, 10.8, 12.1, 13.6, 12.1),
    ),
}

BEST_FAMILY = {  # M -> shape -> the kernel named best
    1: {
        **dict.fromkeys(DENSE, "scalar GEMV"),
        "moe_gu": "grouped scalar GEMV",
        "moe_dn": "grouped MMA",
    },
    4: {
        "gateup": "MMA or scalar GEMV",
        **dict.fromkeys(("down", "Q", "O"), "MMA"),
        "KV": "scalar GEMV",
        **dict.fromkeys(MOE, "grouped MMA"),
    },
}

LARGE_M_US = {  # k = 4: (shape, M) -> family -> microseconds, where fp16 is the library
    ("moe_gu", 64): {"grouped MMA": 54.5, "dequant + library": 54.7, "fp16": 25.6},
    ("moe_gu", 128): {"grouped MMA": 85.9, "dequant + library": 57.8, "fp16": 28.6},
    ("moe_gu", 256): {"grouped MMA": 134.4, "dequant + library": 64.7, "fp16": 35.7},
    ("moe_gu", 512): {"grouped MMA": 262.4, "dequant + library": 98.2, "fp16": 69.1},
    ("moe_dn", 64): {"grouped MMA": 42.9, "dequant + library": 53.3, "fp16": 24.1},
    ("moe_dn", 128): {"grouped MMA": 80.4, "dequant + library": 54.9, "fp16": 25.6},
    ("moe_dn", 256): {"grouped MMA": 154.4, "dequant + library": 67.9, "fp16": 38.6},
    ("moe_dn", 512): {"grouped MMA": 300.6, "dequant + library": 98.4, "fp16": 69.2},
    ("gateup", 64): {"MMA": 49.9, "dequant + library": 30 + 15, "fp16": 15.4},
    ("gateup", 128): {"MMA": 73.3, "dequant + library": 30 + 32, "fp16": 31.9},
    ("gateup", 512): {"MMA": 165.1, "dequant + library": 30 + 80, "fp16": 80.0},
}

GROUPED_US = {  # k = 4: (shape, M) -> family -> microseconds
    ("moe_gu", 1): {"grouped scalar GEMV": 11.3, "grouped MMA": 11.6, "fp16": 11.7},
    ("moe_gu", 2): {"grouped scalar GEMV": 12.9, "grouped MMA": 11.8, "fp16": 12.7},
    ("moe_gu", 4): {"grouped scalar GEMV": 17.1, "grouped MMA": 11.9, "fp16": 18.9},
    ("moe_dn", 1): {"grouped scalar GEMV": 24.9, "grouped MMA": 12.1, "fp16": 13.1},
    ("moe_dn", 4): {"grouped scalar GEMV": 38.3, "grouped MMA": 12.1, "fp16": 12.1},
}

# k = 4 over whole sessions: users -> (k-bit time over fp16 time, the kernels that dominate). The 0.57 of one user is
# better than 0.68, the best ratio of any M measured above, so no weighting of the tables can give this number. The source
# calls it "43% faster", which is 43% less time, or 1.75x.
USERS = {
    1: (0.57, "scalar GEMV (87%)"),
    4: (0.76, "scalar GEMV (59%) and dequant + library (41%)"),
    8: (0.85, "MMA (45%) and dequant + library (55%)"),
    16: (1.00, "dequant + library (76%)"),
    32: (1.17, "dequant + library (93%)"),
    64: (1.23, "dequant + library (98%)"),
}

REPORTED_BLOCK_US = {  # M -> bits -> microseconds, to which sums of the rows above agree within 0.1
    1: {2: 57.8, 3: 65.7, 4: 75.1, 5: 82.3, 16: 100.4},
    4: {2: 69.2, 3: 77.7, 4: 86.4, 5: 94.7, 16: 126.6},
}

# k = 4 in the source's summary: "34-74% faster" for 1 to 4 users. Its blocks give 34% (M = 1) and 47% (M = 4), and
# 74% is k = 2. Large M: "0.47-0.73x of fp16". Its own gateup at M = 64 is 0.34.
REPORTED_K4_FASTER = (0.34, 0.74)
REPORTED_LARGE_M_SPEED = (0.47, 0.73)

DEQUANT_ELEMENTS = 8 * 512 * 2048  # the weights of one MoE layer
REPORTED_DEQUANT_US = 29  # at 89% of the bandwidth, says the source, though 2.5 bytes a weight would take 23
DEQUANT_BANDWIDTH_SHARE = 0.89
INSTRUCTION_RATIO = 39  # unpacking instructions for each matrix multiply instruction on Ada

# Grouped MMA, M = 512: the text says 113 us now and 35 in theory, the table above has 262 and 301.
REPORTED_GROUPED_MMA_512_US = {"now": 113, "asynchronous": 35}
