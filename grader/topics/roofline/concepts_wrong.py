"""Wrong answers to the numpy questions, each a cell: the suites hand it in, and the report computes with it.

(sentence, the cell's body) by question and mistake; ENTRY holds what the body stands in.
"""

from grader.questions.cells import Cells

ENTRY = {
    "product_intensity": "m, n, k, elem_bytes",
    "roof": "intensity, peak, bandwidth",
    "time_terms": "flops, bytes_moved, overhead_s, peak, bandwidth, efficiency",
    "tile_sectors": "rows, cols, row_length, elem_bytes",
    "plan_bytes": "groups, rows, width, elem_bytes",
}
TERMS = """m, c = {memory}, {compute}
terms = {{"memory": m, "compute": c, "overhead": overhead_s}}
return m, c, {together}, {name}"""
RIGHT = {
    "memory": "bytes_moved / bandwidth",
    "compute": "flops / (peak * efficiency)",
    "together": "max(m, c) + overhead_s",
    "name": "max(terms, key=terms.get)",
}


def terms(**changed: str) -> str:
    return TERMS.format(**RIGHT | changed)


TABLE = {
    "product_intensity": {
        "one FLOP": (
            "half of what is wanted: a multiply-add counts as two FLOP",
            "return m * n * k / (elem_bytes * (m * k + k * n + m * n))",
        ),
        "C left out": (
            "C crosses the memory too, once: its m * n elements are missing",
            "return 2 * m * n * k / (elem_bytes * (m * k + k * n))",
        ),
        "elements": (
            "this is FLOP for each element: an element has elem_bytes bytes",
            "return 2 * m * n * k / (m * k + k * n + m * n)",
        ),
        "C both ways": (
            "C is only written, so it counts once",
            "return 2 * m * n * k / (elem_bytes * (m * k + k * n + 2 * m * n))",
        ),
        "whole numbers": (
            "the fraction is cut off: // divides into whole numbers, / keeps what is left",
            "return 2 * m * n * k // (elem_bytes * (m * k + k * n + m * n))",
        ),
        "upside down": (
            "this is bytes per FLOP",
            "return elem_bytes * (m * k + k * n + m * n) / (2 * m * n * k)",
        ),
    },
    "roof": {
        "the higher roof": (
            "this is the higher of the two roofs: the lower one is met first",
            'return max(peak, bandwidth * intensity), "memory" if intensity < peak / bandwidth else "compute"',
        ),
        "the slope alone": (
            "this is the slope alone: beyond the ridge the rate stays at the peak",
            'return bandwidth * intensity, "memory" if intensity < peak / bandwidth else "compute"',
        ),
        "the peak alone": (
            "this is the peak alone: left of the ridge memory allows less",
            'return peak, "memory" if intensity < peak / bandwidth else "compute"',
        ),
        "names exchanged": (
            "the names have changed places: left of the ridge it is memory that limits",
            'return min(peak, bandwidth * intensity), "compute" if intensity < peak / bandwidth else "memory"',
        ),
        "ridge upside down": (
            'every call says "compute": the limit changes at the ridge, which is peak / bandwidth, not bandwidth / peak',
            'return min(peak, bandwidth * intensity), "memory" if intensity < bandwidth / peak else "compute"',
        ),
        "memory at the ridge": (
            "right but for the ridge itself, which counts as compute",
            'return min(peak, bandwidth * intensity), "memory" if intensity <= peak / bandwidth else "compute"',
        ),
    },
    "time_terms": {
        "added up": (
            "the three terms are added up: bytes and arithmetic overlap, so only the longer of these two shows",
            terms(together="m + c + overhead_s"),
        ),
        "overhead hidden": (
            "the overhead comes on top: nothing overlaps with it",
            terms(together="max(m, c, overhead_s)"),
        ),
        "no efficiency": (
            "the arithmetic runs at the full peak here: it reaches peak * efficiency",
            terms(compute="flops / peak"),
        ),
        "efficiency as a factor": (
            "the efficiency makes the rate smaller, so the time longer: it stands below the line",
            terms(compute="flops / peak * efficiency"),
        ),
        "efficiency of the memory": (
            "the efficiency belongs to the arithmetic, not to the bytes",
            terms(memory="bytes_moved / (bandwidth * efficiency)"),
        ),
        "the smallest": ("this names the smallest term", terms(name="min(terms, key=terms.get)")),
        "memory or compute": (
            "the overhead may be the largest term, too",
            terms(name='"memory" if m > c else "compute"'),
        ),
    },
    "tile_sectors": {
        "bytes by 32": (
            "this is the tile's bytes over 32, as if all its rows stood end to end",
            "return math.ceil(rows * cols * elem_bytes / 32)",
        ),
        "a sector each": (
            "this counts a sector for each element: neighbours share one",
            "return rows * cols",
        ),
        "rows rounded up": (
            "this rounds each row up as if it began on a sector: a row may begin within one, and end one later",
            "return rows * math.ceil(cols * elem_bytes / 32)",
        ),
        "row by row": (
            "a sector that two rows share is counted once for each of them: count the different sectors of all rows together",
            "ends = [((r * row_length) * elem_bytes // 32, ((r * row_length + cols) * elem_bytes - 1) // 32) for r in range(rows)]\n"
            "return sum(last - first + 1 for first, last in ends)",
        ),
        "end included": (
            "a row's last byte is the one before start + cols * elem_bytes: a row that ends on a sector's border touches no sector beyond it",
            "starts = [r * row_length * elem_bytes for r in range(rows)]\n"
            "return len({s for start in starts for s in range(start // 32, (start + cols * elem_bytes) // 32 + 1)})",
        ),
        "whole rows": (
            "this counts what lies between the tile's first and last element: the rest of each row is not loaded",
            "return ((rows - 1) * row_length + cols) * elem_bytes // 32 + 1",
        ),
        "no bytes": (
            "this takes an element for a byte: its address is elem_bytes times its place",
            "return len({(r * row_length + c) // 32 for r in range(rows) for c in range(cols)})",
        ),
        "bytes": (
            "these are bytes: the number of sectors is asked for",
            "return 32 * len({(r * row_length + c) * elem_bytes // 32 for r in range(rows) for c in range(cols)})",
        ),
    },
    "plan_bytes": {
        "nothing fused": (
            "these are the bytes of one kernel for each operation: operations of a group share a kernel",
            "one = 2 * rows * width * elem_bytes\nreturn sum(groups) * one, 0.0",
        ),
        "one way": (
            "each kernel reads a tensor and writes one: this counts one of the two",
            "one = rows * width * elem_bytes\nreturn len(groups) * one, (sum(groups) - len(groups)) * one",
        ),
        "all in one": (
            "this is a single kernel: the plan has one for each group",
            "one = 2 * rows * width * elem_bytes\nreturn one, (sum(groups) - 1) * one",
        ),
        "elements": (
            "these are elements: each has elem_bytes bytes",
            "one = 2 * rows * width\nreturn len(groups) * one, (sum(groups) - len(groups)) * one",
        ),
        "between kernels": (
            "this leaves out the first read and the last write",
            "one = 2 * rows * width * elem_bytes\nreturn (len(groups) - 1) * one, (sum(groups) - len(groups)) * one",
        ),
        "against all in one": (
            "the saving is against one kernel for each operation, sum(groups) of them, not against one kernel for the whole chain",
            "one = 2 * rows * width * elem_bytes\nreturn len(groups) * one, (len(groups) - 1) * one",
        ),
        "not a difference": (
            "the second number is what the plan saves: the unfused bytes less the plan's",
            "one = 2 * rows * width * elem_bytes\nreturn len(groups) * one, sum(groups) * one",
        ),
    },
}

CELLS = Cells(ENTRY, TABLE)
MADE = CELLS.made("roofline")
