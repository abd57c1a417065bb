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
            "look again after each copy: the next one goes to the expert that now has the most tokens per copy",
            "copies = np.ones(len(loads), int)\ncopies[loads.argmax()] += min(spare, devices - 1)\nreturn copies, (loads / copies).max()",
        ),
        "the heaviest each": (
            "here the heaviest experts get one copy each: a very hot expert may need several before the next expert gets any",
            "copies = np.ones(len(loads), int)\ncopies[np.argsort(-loads, kind='stable')[:spare]] += 1\nreturn copies, (loads / copies).max()",
        ),
        "a copy lost": (
            "an expert with a copy on each device can't take another, so the copy goes to the next expert: here it is lost",
            "copies = np.ones(len(loads), int)\nfor _ in range(spare):\n    e = (loads / copies).argmax()\n    copies[e] += copies[e] < devices\nreturn copies, (loads / copies).max()",
        ),
        "none without tokens": (
            "once every expert with tokens has a copy on each device, experts without tokens are next in line: no copy is lost",
            "copies = np.ones(len(loads), int)\nfor _ in range(spare):\n    share = np.where(copies < devices, loads / copies, 0.0)\n    copies[share.argmax()] += share.max() > 0\nreturn copies, (loads / copies).max()",
        ),
        "whole shares": (
            "a copy's share may be a fraction: 11 tokens on two copies are 5.5 each, which is more than 5",
            copies(share="np.where(copies < devices, loads // copies, -1.0)"),
        ),
        "rounded shares": (
            "a copy's share may be a fraction: rounded, 4.5 and 4.33 look alike",
            copies(share="np.where(copies < devices, np.rint(loads / copies), -1.0)"),
        ),
        "zero when full": (
            "an expert with a copy on every device gets no more: it ranks even below an expert without tokens",
            copies(share="np.where(copies < devices, loads / copies, 0.0)"),
        ),
        "no limit": (
            "a second copy on the same device gains nothing: an expert has at most one copy per device",
            copies(share="loads / copies"),
        ),
        "never again": (
            "an expert's tokens are shared by all its copies: divide by the number of copies",
            copies(share="np.where(copies < devices, loads, -1.0)"),
        ),
        "spare ones": (
            "every expert starts with one copy",
            copies(result="copies - 1, (loads / copies).max()"),
        ),
        "undivided": (
            "this is the busiest expert, not the busiest copy: divide by the number of copies",
            copies(result="copies, loads.max()"),
        ),
    },
)
