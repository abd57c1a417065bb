"""List the mistakes of *best cure*, a row each."""

from grader.questions.rows import in_cells

CURE = """part = int({part})
before = times.sum()
after = before - times[part] * removable[part]
return part, after, {speed}"""


MISTAKES = in_cells(
    "best_cure",
    "times, removable",
    {
        "the largest part": (
            "the largest part isn't the largest saving: compare times * removable",
            CURE.format(part="times.argmax()", speed="before / after"),
        ),
        "the largest share removed": (
            "a cure that removes most of a small part saves little: compare times * removable",
            CURE.format(part="removable.argmax()", speed="before / after"),
        ),
        "what is left": (
            "removable is the share that the cure takes away, not the share that stays",
            "saved = times * (1 - removable)\npart = int(saved.argmax())\nafter = times.sum() - saved[part]\nreturn part, after, times.sum() / after",
        ),
        "all cures at once": (
            "one cure at a time: only the chosen part becomes shorter",
            "saved = times * removable\nafter = times.sum() - saved.sum()\nreturn int(saved.argmax()), after, times.sum() / after",
        ),
        "the part's speed-up": (
            "this is the speed-up of the part: the other parts take as long as before",
            CURE.format(part="(times * removable).argmax()", speed="1 / (1 - removable[part])"),
        ),
        "the ceiling": (
            "this is the ceiling, as if the part took no time at all: the cure removes only a share of it",
            CURE.format(part="(times * removable).argmax()", speed="before / (before - times[part])"),
        ),
        "the share saved": (
            "this is the share of the time that is saved: divide the step before by the step after",
            CURE.format(part="(times * removable).argmax()", speed="1 - after / before"),
        ),
        "the last of equals": (
            "of cures that save equally much, take the first",
            "saved = times * removable\npart = len(times) - 1 - int(saved[::-1].argmax())\nafter = times.sum() - saved[part]\nreturn part, after, times.sum() / after",
        ),
    },
)
