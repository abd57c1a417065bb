"""List the mistakes of *suspect*, a row each."""

from grader.questions.rows import in_cells

FLOW = """{first}
{second}
{third}
{fourth}
bound, share = ("memory", bandwidth) if {bound} else ("compute", compute)
{last}"""
RIGHT = {
    "first": 'if input_wait > 0.1:\n    return "input"',
    "second": 'if launch_gap > 0.1:\n    return "launches"',
    "third": 'if skew > 1.05:\n    return "stragglers"',
    "fourth": 'if exposed > 0.1:\n    return "communication"',
    "bound": "intensity < ridge",
    "last": 'return bound if share >= 0.7 else "implementation"',
}


MISTAKES = in_cells(
    "suspect",
    "input_wait, launch_gap, skew, exposed, intensity, ridge, compute, bandwidth",
    {
        "roofs first": (
            "waits come first: a GPU that waits has no bottleneck among its kernels",
            'if bandwidth >= 0.7 and intensity < ridge:\n    return "memory"\n' + FLOW.format(**RIGHT),
        ),
        "communication before stragglers": (
            "a rank that waits inside a collective is a witness: rule out the straggler first",
            FLOW.format(
                **RIGHT
                | {
                    "third": 'if exposed > 0.1:\n    return "communication"',
                    "fourth": 'if skew > 1.05:\n    return "stragglers"',
                }
            ),
        ),
        "the largest wait": (
            "take the first wait that counts, not the largest: follow the order of the diagnosis",
            'waits = {"input": input_wait, "launches": launch_gap, "communication": exposed}\nif skew > 1.05:\n    return "stragglers"\nname = max(waits, key=waits.get)\nif waits[name] > 0.1:\n    return name\n'
            + FLOW.format(**RIGHT),
        ),
        "a wait at its limit": (
            "a share of exactly 0.10 doesn't count: >, not >=",
            FLOW.format(
                **RIGHT
                | {
                    "first": 'if input_wait >= 0.1:\n    return "input"',
                    "second": 'if launch_gap >= 0.1:\n    return "launches"',
                }
            ),
        ),
        "a skew at its limit": (
            "a skew of exactly 1.05 doesn't count: >, not >=",
            FLOW.format(**RIGHT | {"third": 'if skew >= 1.05:\n    return "stragglers"'}),
        ),
        "one limit for all": (
            "a skew above 1.05 counts; the limit of 0.10 is for the shares",
            FLOW.format(**RIGHT | {"third": 'if skew - 1 > 0.1:\n    return "stragglers"'}),
        ),
        "above the roof's limit": (
            "exactly 0.7 of the roof is enough: >=, not >",
            FLOW.format(**RIGHT | {"last": 'return bound if share > 0.7 else "implementation"'}),
        ),
        "either roof": (
            "compare only with the kernel's own roof: the bandwidth share below the ridge, the compute share from the ridge on",
            FLOW.format(
                **RIGHT | {"last": 'return bound if max(compute, bandwidth) >= 0.7 else "implementation"'}
            ),
        ),
        "no implementation": (
            "far below its roof a kernel is limited by its implementation, not by the roof",
            FLOW.format(**RIGHT | {"last": "return bound"}),
        ),
        "memory at the ridge": (
            "work exactly at the ridge counts as compute",
            FLOW.format(**RIGHT | {"bound": "intensity <= ridge"}),
        ),
    },
)
