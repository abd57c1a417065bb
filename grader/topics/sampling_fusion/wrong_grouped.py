"""Draws after top-k by groups of 64, wrong."""

from grader.questions.tables import changed
from grader.topics.sampling_fusion.wrong_filtered import COLD, ENDED, LAST, NO_ID, RANGE

GROUPED = "sampling_fusion.grouped_draw"
GROUPS_K = "tl.minimum(tl.load(top_k_ptr + b), GROUPS)"
TOKENS_K = "tl.minimum(tl.load(top_k_ptr + b), V)"
KEPT = f"keep = k_largest(x, {TOKENS_K}) & there"
SCORE = "score = tl.where(t == 0, x, x / tl.where(t == 0, 1.0, t) + noise)"
FIRST = "tl.cumsum(tie.to(tl.int32), 0) <= room"

WRONG = {
    GROUPED: {
        "16 groups at most": changed((GROUPS_K, f"tl.minimum({GROUPS_K}, 16)"), mistake="too few groups"),
        "a group too few": changed((GROUPS_K, f"tl.maximum(1, {GROUPS_K} - 1)"), mistake="too few groups"),
        "of each group its maximum": changed(
            (KEPT, "keep = there & (at % 64 == tl.reshape(tl.broadcast_to(tl.argmax(tl.reshape(x, (64, 64)), 1)[:, None], (64, 64)), (PLACES,)))"),
            mistake="maxima alone",
        ),
        "the later of equal groups": changed(
            ("    keep = k_largest(best,", "    back = GROUPS - 1 - group\n    best = tl.load(maxima_ptr + b * GROUPS + back, mask=group < GROUPS, other=float(\"-inf\"))\n    keep = k_largest(best,"),
            ("- 1, group, mask=keep)", "- 1, back, mask=keep)"),
            ("    offs = group * 64 + at % 64\n", "    group = tl.sort(tl.load(chosen_ptr + b * 64 + tl.arange(0, 64)))\n    group = tl.reshape(tl.broadcast_to(group[:, None], (64, 64)), (PLACES,))\n    offs = group * 64 + at % 64\n"),
            mistake="the later group",
        ),
        "all tokens of the chosen groups": changed((KEPT, "keep = there"), mistake="whole groups"),
        "no top-k at all": changed((GROUPS_K, "GROUPS"), (KEPT, "keep = there")),
        "the noise of the place": changed(("tl.load(seed_ptr + b), offs)", "tl.load(seed_ptr + b), at)"), mistake="noise by place"),
        "the place for the token": changed(("(score == best), offs,", "(score == best), at,")),
        "always greedy": changed((SCORE, "score = x + 0 * noise"), mistake="always greedy"),
        "never greedy": changed((SCORE, "score = x / tl.where(t == 0, 1.0, t) + noise"), mistake="never greedy"),
        "noise divided too": changed((SCORE, "score = tl.where(t == 0, x, (x + noise) / tl.where(t == 0, 1.0, t))"), mistake="noise scaled"),
        "one seed for all": changed(("tl.load(seed_ptr + b)", "tl.load(seed_ptr)"), mistake="one seed"),
        "one temperature for all": changed(("tl.load(temperature_ptr + b)", "tl.load(temperature_ptr)"), mistake="one temperature"),
        "one top_k for all": changed(("tl.load(top_k_ptr + b)", "tl.load(top_k_ptr)"), mistake="one top_k"),
        "all ties stay": changed((KEPT, "keep = (x >= tl.min(tl.where(k_largest(x, tl.minimum(tl.load(top_k_ptr + b), V)), x, float(\"inf\")), 0)) & there"), mistake="ties all stay"),
        "as many equals as all together": changed(("room = k - tl.sum((key > low).to(tl.int32), 0)", "room = k")),
        "the highest ids first": changed((FIRST, "tl.cumsum(tie.to(tl.int32), 0, reverse=True) <= room"), mistake="highest id first"),
        "minus zero": changed(
            ("-(bits & 0x7FFFFFFF)", "bits ^ 0x7FFFFFFF"), (GROUPS_K, "tl.minimum(64, GROUPS)"), mistake="minus zero"
        ),
        "the tail left out": changed(("groups = triton.cdiv(p.V, 64)", "groups = max(1, p.V // 64)")),
        "maxima of 65,536 logits at most": changed(("offs < V, other", "(offs < V) & (offs < 65536), other")),
        "read in half precision": changed((".to(tl.float32)", ".to(tl.float16).to(tl.float32)"), mistake="rounded to fp16"),
        "maxima read twice": changed(
            (
                "    tl.store(maxima_ptr",
                "    x = tl.maximum(x, tl.load(row + offs * stride_logitsv, mask=offs < V, other=float(\"-inf\")).to(tl.float32))\n    tl.store(maxima_ptr",
            ),
            part="traffic",
        ),
        "logits kept in scratch": changed(
            ("logits_ptr, maxima_ptr, V", "logits_ptr, maxima_ptr, kept_ptr, V"),
            ("    tl.store(maxima_ptr", "    tl.store(kept_ptr + b * V + offs, x, mask=offs < V)\n    tl.store(maxima_ptr"),
            ('"scratch": {', '"scratch": {"kept": ((p.B, p.V), "fp32", 0), '),
            part="traffic",
        ),
    },
}  # fmt: skip

EQUIVALENT = {
    GROUPED: {
        "right side dropped: k_largest(x, tl.minimum(tl.load(top_k_ptr + b), V)) & there -> k_largest(x, tl.minimum(tl.load(top_k_ptr + b), V)) & True": LAST,
        "plus one: 1.0 -> 2.0": COLD,
        "a little more: 1.0 -> 1.05": COLD,
        "halved: 2147483647 -> 1073741823 (2)": NO_ID,
        "plus one: 2147483647 -> 2147483648": RANGE,
        "plus one: 2147483648 -> 2147483649": RANGE,
        "plus one: 32 -> 33": ENDED,
        "plus one: 1 -> 2 (5)": "another middle, and still one value after 32 halvings",
        "right side dropped: middle - 1 -> middle - 0": "two values are left, of which the upper is known to be too high",
        "comparison: tl.sum((key >= middle).to(tl.int32), 0) >= k -> tl.sum((key >= middle).to(tl.int32), 0) > k": "finds the next number after the k-th, for whose equals no room is left",
        "comparison: bits < 0 -> bits <= 0": "minus 0 is 0",
        "plus one: 0 -> 1 (15)": "minus 0 is 0",
        "plus one: 0 -> 1 (14)": "every maximum is written before it is read",
        "halved: 16 -> 8": "any block that holds the maxima",
        "plus one: 1 -> 2 (6)": "any number below 0 says that no group was chosen",
        "halved: 64 -> 32 (11)": "programs behind the last group store nothing",
        "plus one: 0 -> 1 (18)": COLD,
        "halved: 64 -> 32": "twice the groups, of which those behind the row hold -inf",
        "plus one: 64 -> 65 (9)": "a place of scratch more, which nobody reads",
    },
}
