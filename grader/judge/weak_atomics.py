"""Name atomics whose order is too weak to keep programs apart. The case runs again with the usual order, and the atomics
are named only if no race is left."""

import re

from grader.box.warm import JailTrouble
from grader.judge.kernel_evidence import KernelEvidence, Run

ORDER = re.compile(r'("tt\.atomic_\w+"[^\n]*?\bsem = )([1-3])\b')
SCOPE = re.compile(r'("tt\.atomic_\w+"[^\n]*?\bscope = )2\b')  # of one block of threads
WEAK = {"1": "relaxed", "2": "acquire", "3": "release"}  # Triton's numbers, of which 4 is acq_rel
SECONDS = 8.0


def to_blame(evidence: KernelEvidence, run: Run) -> str:
    """Return a sentence about a run's atomics, or an empty text if they aren't the cause of its race."""
    texts = evidence.texts(evidence.purpose_of(run))
    used = sorted({step.text for step in run.plan.steps})
    found = sorted({WEAK[order] for number in used for _, order in ORDER.findall(texts[number])})
    of_blocks = any(SCOPE.search(texts[number]) for number in used)
    if not found and not of_blocks:
        return ""
    stronger = tuple(SCOPE.sub(r"\g<1>1", ORDER.sub(r"\g<1>4", text)) for text in texts)
    try:
        outcome = evidence.launch(run.case, run.plan, stronger, run.placed, seconds=SECONDS)
    except JailTrouble:
        return ""
    if outcome.error or outcome.header["races"] or outcome.header["undecided"]:
        return ""
    if of_blocks:
        return (
            'scope="cta" in the cell\'s atomics: such an atomic orders the threads of one program alone. With scope="gpu", the '
            "default, these programs don't race"
        )
    orders = " and ".join(f'sem="{order}"' for order in found)
    return (
        f"{orders} in the cell's atomics: such an atomic doesn't make earlier stores visible to the program that comes next. "
        'With sem="acq_rel", the default, these programs don\'t race'
    )
