"""List the mistakes of *roof*, a row each."""

from grader.questions.rows import in_cells

MISTAKES = in_cells(
    "roof",
    "intensity, peak, bandwidth",
    {
        "the higher roof": (
            "this is the higher of the two roofs: the lower one is the limit",
            'return max(peak, bandwidth * intensity), "memory" if intensity < peak / bandwidth else "compute"',
        ),
        "the slope alone": (
            "this is only the slope: beyond the ridge the rate stays at the peak",
            'return bandwidth * intensity, "memory" if intensity < peak / bandwidth else "compute"',
        ),
        "the peak alone": (
            "this is only the peak: left of the ridge, memory allows less",
            'return peak, "memory" if intensity < peak / bandwidth else "compute"',
        ),
        "names exchanged": (
            "the names are swapped: left of the ridge, memory is the limit",
            'return min(peak, bandwidth * intensity), "compute" if intensity < peak / bandwidth else "memory"',
        ),
        "ridge upside down": (
            'every call says "compute": the limit changes at the ridge, which is peak / bandwidth, not bandwidth / peak',
            'return min(peak, bandwidth * intensity), "memory" if intensity < bandwidth / peak else "compute"',
        ),
        "memory at the ridge": (
            "right except at the ridge itself, which counts as compute",
            'return min(peak, bandwidth * intensity), "memory" if intensity <= peak / bandwidth else "compute"',
        ),
    },
)
