"""List right answers to *grouped draw* in other forms."""



FORMS = {
        "sixty-four halvings": ((), [("range(32)", "range(64)")]),
        "one program a row for the maxima": (("speed",), [('"TILE": 64', '"TILE": triton.next_power_of_2(groups)'), ("triton.cdiv(groups, 64), p.B", "1, p.B")]),
        "sixteen groups a program": ((), [('"TILE": 64', '"TILE": 16'), ("triton.cdiv(groups, 64), p.B", "triton.cdiv(groups, 16), p.B")]),
        "64 groups for everybody": ((), [("tl.minimum(tl.load(top_k_ptr + b), GROUPS)", "tl.minimum(64, GROUPS)")]),
        "ties by a count from the end": ((), [("tl.cumsum(tie.to(tl.int32), 0) <= room", "tl.sum(tie.to(tl.int32), 0) - tl.cumsum(tie.to(tl.int32), 0, reverse=True) < room")]),
        "a reciprocal temperature": ((), [("x / tl.where(t == 0, 1.0, t) + noise", "x * (1.0 / tl.where(t == 0, 1.0, t)) + noise")]),
        "groups in a block of two dimensions": ((), [("    group = tl.load(chosen_ptr + b * 64 + at // 64)\n    offs = group * 64 + at % 64\n", "    chosen = tl.load(chosen_ptr + b * 64 + tl.arange(0, PLACES // 64))\n    offs = tl.reshape(chosen[:, None] * 64 + tl.arange(0, 64)[None, :], (PLACES,))\n    group = tl.where(offs < 0, -1, offs // 64)\n")]),
    }
