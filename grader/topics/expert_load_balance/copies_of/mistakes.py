"""List the mistakes of *copies of*, a row each."""

from grader.questions.rows import in_cells

COPIES = """copies = np.ones(len(loads), int)
for _ in range(spare):
    share = {share}
    copies[share.argmax()] += 1
return {result}"""
RIGHT_COPIES = {
    "share": "np.where(copies < devices, loads / copies, -1.0)",
    "result": "copies, (loads / copies).max()",
}


def copies(**changed: str) -> str:
    return COPIES.format(**RIGHT_COPIES | changed)


MISTAKES = in_cells(
    "copies_of",
    "loads, devices, spare",
    {
        "hottest alone": (
            "after each copy look again: the next one goes to whoever has the most tokens a copy now",
            "copies = np.ones(len(loads), int)\ncopies[loads.argmax()] += min(spare, devices - 1)\nreturn copies, (loads / copies).max()",
        ),
        "the heaviest each": (
            "the heaviest get one each here: a very hot expert may need several before the next gets any",
            "copies = np.ones(len(loads), int)\ncopies[np.argsort(-loads, kind='stable')[:spare]] += 1\nreturn copies, (loads / copies).max()",
        ),
        "a copy lost": (
            "a copy that an expert can't have, since each device has one, goes to the next: here it is lost",
            "copies = np.ones(len(loads), int)\nfor _ in range(spare):\n    e = (loads / copies).argmax()\n    copies[e] += copies[e] < devices\nreturn copies, (loads / copies).max()",
        ),
        "none without tokens": (
            "once all with tokens have a copy on every device, the others are next in line: no copy is lost",
            "copies = np.ones(len(loads), int)\nfor _ in range(spare):\n    share = np.where(copies < devices, loads / copies, 0.0)\n    copies[share.argmax()] += share.max() > 0\nreturn copies, (loads / copies).max()",
        ),
        "whole shares": (
            "a copy's share may be a fraction: 11 tokens of two copies are 5.5 each, and more than 5",
            copies(share="np.where(copies < devices, loads // copies, -1.0)"),
        ),
        "rounded shares": (
            "a copy's share may be a fraction: rounded, 4.5 and 4.33 look alike",
            copies(share="np.where(copies < devices, np.rint(loads / copies), -1.0)"),
        ),
        "zero when full": (
            "an expert with a copy on every device is out of the running, below one that has no tokens",
            copies(share="np.where(copies < devices, loads / copies, 0.0)"),
        ),
        "no limit": (
            "a second copy on the same device wins nothing: an expert has at most as many as there are devices",
            copies(share="loads / copies"),
        ),
        "never again": (
            "an expert's tokens are shared by all its copies: divide by how many it has",
            copies(share="np.where(copies < devices, loads, -1.0)"),
        ),
        "spare ones": (
            "every expert has one copy to begin with",
            copies(result="copies - 1, (loads / copies).max()"),
        ),
        "undivided": (
            "the busiest copy, not the busiest expert: divide by the copies",
            copies(result="copies, loads.max()"),
        ),
    },
)
