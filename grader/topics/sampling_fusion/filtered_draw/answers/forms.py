"""List right answers to *filtered draw* in other forms."""



FORMS = {
        "sorted after all": ((), "filtered_sorted"),
        "by halving real numbers": ((), "filtered_by_halves"),
        "sixty-four halvings": ((), [("range(32)", "range(64)")]),
        "eight warps": ((), [('"num_warps": 4', '"num_warps": 8')]),
        "a wider block": ((), [("max(16, triton.next_power_of_2(p.V))", "max(64, 2 * triton.next_power_of_2(p.V))")]),
        "base two": ((), [("weight = tl.exp((x - top) / warm)", "weight = tl.exp2((x - top) / warm * 1.4426950408889634)")]),
        "ties by a count from the end": ((), [("(tl.cumsum(tie.to(tl.int32), 0) <= room)", "(tl.sum(tie.to(tl.int32), 0) - tl.cumsum(tie.to(tl.int32), 0, reverse=True) < room)")]),
    }
