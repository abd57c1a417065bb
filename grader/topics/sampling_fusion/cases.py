"""What the drawing kernels are tried on: vocabularies of every length, equals of every kind, knobs from whole ranges."""

import numpy as np

from grader.questions import Case
from grader.questions.draws import between, odd, spread


def size(b, v, n=None) -> dict:
    return {"B": int(b), "V": int(v)} | ({"L": int(n)} if n else {})


def hidden_plain(rng: np.random.Generator) -> list[Case]:
    return [
        Case(size(8, odd(rng, 1001, 6001)), "fp32", kind="an odd vocabulary"),
        Case(size(5, between(rng, 250, 350)), "bf16", kind="bf16 logits"),
        Case(size(2, 1), "fp32", kind="a vocabulary of one"),
        Case(size(4, between(rng, 900, 1100)), "fp32", values="large", kind="large logits"),
        Case(size(6, 4200), "fp32", values="equal", kind="equal logits"),
        Case(size(16, between(rng, 3000, 5000)), "fp32", values="pairs", kind="two largest logits far apart"),
        Case(size(6, between(rng, 500, 900)), "fp32", layout=spread(rng, "logits"), kind="no stride of 1"),
        Case(size(24, 200), "fp32", values="fine", kind="logits that fp16 cannot tell apart"),
        Case(size(30, 90), "fp32", layout={"logits": "transposed"}, kind="transposed logits"),
        Case(size(4, 60), "fp32", values="a row banned", kind="logits of -inf"),
        Case(size(6, between(rng, 300, 700)), "fp32", values="far below zero", kind="logits far below zero"),
        Case(
            size(128, between(rng, 900, 1100)),
            "fp32",
            values="close calls",
            kind="scores that lie close together",
        ),
        Case(size(32, between(rng, 60, 90)), "fp32", values="cold close calls", kind="small temperatures"),
        Case(size(1, odd(rng, 401, 901)), "fp32", kind="a single row"),
        Case(
            size(40, between(rng, 200, 400)),
            "fp32",
            values="any temperature",
            kind="temperatures from cold to hot",
        ),
        Case(
            size(2, between(rng, 128_300, 136_000)), "fp32", values="a warm tail", kind="a large vocabulary"
        ),
    ]


def hidden_masked(rng: np.random.Generator) -> list[Case]:
    strided = ("logits", "allowed", "history")
    return [
        Case(size(3, odd(rng, 201, 1201), 9), "fp32", kind="an odd vocabulary"),
        Case(size(4, between(rng, 280, 330), 40), "bf16", kind="bf16 logits"),
        Case(size(3, 128, 5), "fp32", values="all banned", kind="a row that bans everything"),
        Case(size(2, 33, 3), "fp32", kind="a mask that ends within a word"),
        Case(
            size(4, 500, 16),
            "fp32",
            layout={"logits": "padded", "allowed": "transposed"},
            kind="strided rows",
        ),
        Case(size(48, 12, 32), "fp32", values="close calls", kind="scores that lie close together"),
        Case(
            size(48, between(rng, 20, 40), between(rng, 60, 90)),
            "fp32",
            values="close calls",
            kind="a long history",
        ),
        Case(
            size(32, between(rng, 10, 20), between(rng, 320, 360)),
            "fp32",
            values="one token again and again",
            kind="a token that came some hundred times",
        ),
        Case(size(128, 12, 32), "bf16", values="one value", kind="penalties between bf16 numbers"),
        Case(
            size(24, 70, 24),
            "fp32",
            values="close calls",
            layout=spread(rng, *strided),
            kind="no stride of 1",
        ),
        Case(size(24, 200, 3), "fp32", values="fine", kind="logits that fp16 cannot tell apart"),
        Case(size(6, 4200, 3), "fp32", values="equal", kind="equal logits"),
        Case(size(8, between(rng, 70, 200), 3), "fp32", values="last bits", kind="the last bit of a word"),
        Case(size(6, between(rng, 60, 90), 3), "fp32", values="far below zero", kind="logits far below zero"),
        Case(size(2, between(rng, 8300, 9500), 4), "fp32", kind="a large vocabulary"),
    ]


def hidden_filtered(rng: np.random.Generator) -> list[Case]:
    return [
        Case(size(8, odd(rng, 201, 1801)), "fp32", kind="an odd vocabulary"),
        Case(size(6, between(rng, 250, 350)), "bf16", kind="bf16 logits"),
        Case(size(6, 7), "fp32", kind="a vocabulary of seven"),
        Case(size(8, between(rng, 900, 1100)), "fp32", values="large", kind="large logits"),
        Case(size(64, 12), "fp32", values="levels", kind="equal logits at the border"),
        Case(size(64, 12), "fp32", values="few tokens", kind="many rows of few tokens"),
        Case(size(32, between(rng, 120, 160)), "fp32", values="many kept", kind="many tokens kept"),
        Case(size(32, 50), "fp32", values="mostly banned", kind="fewer tokens than top-k asks for"),
        Case(size(32, 60), "fp32", values="a heavy tail", kind="a crowd that min-p rules out"),
        Case(size(32, 100), "fp32", layout={"logits": "transposed"}, kind="transposed logits"),
        Case(size(12, between(rng, 80, 120)), "fp32", layout=spread(rng, "logits"), kind="no stride of 1"),
        Case(size(24, 200), "fp32", values="fine", kind="logits that fp16 cannot tell apart"),
        Case(size(8, 50), "fp32", values="banned", kind="logits of -inf"),
        Case(size(64, 16), "fp32", values="exact borders", kind="exactly p, and exactly min-p"),
        Case(size(8, between(rng, 20, 40)), "fp32", values="one low value", kind="logits far below zero"),
        Case(size(32, 16), "fp32", values="zeros", kind="zeros of both signs"),
        Case(size(2, 2048), "fp32", values="many kept", kind="the largest vocabulary"),
        Case(size(12, 2048), "fp32", values="the last one wins", kind="filters that are off"),
        Case(size(128, 24), "fp32", values="near borders", kind="a mass close to p"),
        Case(size(6, between(rng, 200, 400)), "fp32", values="equal", kind="equal logits"),
    ]
