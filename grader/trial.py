"""run(answer, case): a learner's own try. Shows arrays, prints and traffic; grades nothing."""

import numpy as np

from grader import allowed, answer, evidence, parts, questions, record, report, sentences
from grader.compare import difference


class Trial:
    """What a run gave: `.outputs`, `.want`, `.inputs` as arrays, `.printed`, `.error` and the traffic."""

    def __init__(self, error: str = "", printed: str = ""):
        self.error, self.printed = error, printed
        self.inputs, self.outputs, self.want, self.facts, self.differences = {}, {}, {}, {}, []

    def lines(self) -> list[str]:
        if self.error:
            return [self.error]
        lines = [f"{name}: shape {a.shape}, {a.dtype}" for name, a in self.outputs.items()]
        return lines + (self.differences or ["every element agrees with the reference"])

    def __repr__(self) -> str:
        return "\n".join([*self.lines(), *(["your prints:", self.printed] if self.printed else [])])

    def _repr_html_(self) -> str:
        lines = "".join(f"<div>{report._e(line)}</div>" for line in self.lines())
        printed = f"<pre>{report._e(self.printed)}</pre>" if self.printed else ""
        return lines + printed + report.traffic_html(self.facts)


def run(answer_object, case=0, question: str | None = None) -> Trial:
    """Try an answer before checking it. `case` is the number of a public case, or a dict of sizes for a kernel."""
    row = questions.find(question) if question else _only_one(answer_object)
    try:
        source = answer.normalise(answer.of_object(answer_object))
        allowed.hold(source, row)
    except (answer.Refused, answer.NotFound) as trouble:
        return Trial(error=str(trouble))
    gathered = evidence.Evidence(row, source, seed=0)
    if row.kind == "numpy":
        return _numpy(gathered, row.public[_index(case, row)])
    chosen = _with_sizes(row, case) if isinstance(case, dict) else row.public[_index(case, row)]
    return _kernel(gathered, gathered.run(chosen, 0, False))


def _index(case, row) -> int:
    if not isinstance(case, int) or not 0 <= case < len(row.public):
        raise ValueError(
            f"case must be a number from 0 to {len(row.public) - 1} or a dict of sizes, got {case!r}"
        )
    return case


def _with_sizes(row, sizes: dict):
    from dataclasses import replace

    known = set(row.public[0].sizes)
    if not set(sizes) <= known or not all(isinstance(v, int) and v > 0 for v in sizes.values()):
        raise ValueError(f"case must give whole numbers for {', '.join(sorted(known))}, got {sizes!r}")
    return replace(row.public[0], sizes={**row.public[0].sizes, **sizes}, layout={})


def _only_one(answer_object):
    """The question a function answers, by its name: the entry of exactly one question."""
    name = getattr(answer_object, "__name__", "")
    matching = [q for q in questions.load().values() if q.entry == name and q.kind == "numpy"]
    if len(matching) != 1:
        raise ValueError(
            'question must be named for this answer, got none; write run(answer, case, question="gemm_tiling.tiled_gemm")'
        )
    return matching[0]


def _numpy(gathered, call) -> Trial:
    outcome = gathered.call([call], False)
    trial = Trial(printed=gathered.printed)
    if outcome.error:
        result = sentences.from_error(outcome.error, record.PartResult("", 0, 0), "")
        trial.error = f"{result.came} (look: {result.look})"
        return trial
    trial.outputs = {name: np.array(a) for name, a in outcome.arrays.items()}
    trial.want = {"result": np.asarray(gathered.question.reference(*call.args), dtype=object)}
    from grader.numpy_parts import _compare

    trouble = _compare(
        gathered.question,
        gathered.question.entry,
        outcome.header["results"][0],
        gathered.question.reference(*call.args),
        outcome.arrays,
    )
    trial.differences = [trouble] if trouble else []
    return trial


def _kernel(gathered, ran) -> Trial:
    trial = Trial(printed=gathered.printed)
    if ran.outcome.error:
        result = sentences.from_error(ran.outcome.error, record.PartResult("", 0, 0), sentences.describe(ran))
        trial.error = f"{result.came} (look: {result.look})"
        return trial
    trial.inputs, trial.want = ran.inputs, ran.want
    trial.outputs = {name: ran.output(name).copy() for name in ran.want}
    trial.facts = {"launches": ran.launches, "touched": parts.touched(ran)}
    if gathered.question.agree:
        sentence = gathered.question.agree(ran.inputs, ran.case, trial.outputs, ran.want)
        trial.differences = [sentence] if sentence else []
        return trial
    limits = gathered.question.tolerance(ran.inputs, ran.case, ran.want)
    found = [
        difference(n, trial.outputs[n].astype(np.float64), want, limits[n]) for n, want in ran.want.items()
    ]
    trial.differences = [d.sentence() for d in found if d]
    return trial
