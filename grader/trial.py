"""Try a learner's own answer (run(answer, case)). It goes the way of a check, shows arrays, prints and traffic, and
grades nothing."""

from dataclasses import replace

import numpy as np

from grader import questions
from grader.box.serve.printed import without_warnings
from grader.judge import answer, numpy_values, parts, rank_values, report, traffic, where
from grader.judge.diagnose import from_error, in_full, judge_case
from grader.judge.failed import Failed, Refusal, Unclear
from grader.judge.kernel_evidence import PUBLIC, KernelEvidence
from grader.judge.numpy_evidence import written
from grader.judge.other_launch import launch_to_blame
from grader.questions import Call, Case

MOST_SHOWN = 8  # values of an output, above which run() shows the shape


class Trial:
    """Holds the result of a run: `.outputs`, `.want`, `.inputs` as arrays, `.printed`, `.error` and the traffic."""

    def __init__(self, error: str = "", look: str = "", printed: str = ""):
        self.error, self.look, self.printed = error, look, printed
        self.inputs, self.outputs, self.want, self.facts = {}, {}, {}, {}
        self.said: list[str] = []  # the counts on the way
        self.asked = None  # a kernel's source, question and case
        self.record = None  # records the run for tilescope, set by a notebook's run

    @property
    def recording(self):
        """Run the tried case again. Return its recording, line by line, for tilescope.show()."""
        return self.record(*self.asked) if self.record and self.asked else None

    def lines(self) -> list[str]:
        warned, _ = without_warnings(self.printed)
        lines = [f"{report.WARNINGS}: {one}" for one in warned]
        lines += [in_short(name, a) for name, a in self.outputs.items()] + self.said
        if self.error:
            return [*lines, self.error, *([f"look: {self.look}"] if self.look else [])]
        return [*lines, "every element agrees with the reference"]

    def __repr__(self) -> str:
        _, own = without_warnings(self.printed)
        return "\n".join([*self.lines(), *(["your prints:", own] if own else [])])

    def _repr_html_(self) -> str:
        lines = "".join(f"<div>{report.escaped(line)}</div>" for line in self.lines())
        _, own = without_warnings(self.printed)
        printed = f"<div>your prints:</div><pre>{report.escaped(own)}</pre>" if own else ""
        return lines + printed + report.traffic_html(self.facts)


def in_short(name: str, array: np.ndarray) -> str:
    """Describe an output, with its values if they are few."""
    if array.size > MOST_SHOWN:
        return f"{name}: shape {array.shape}, {array.dtype}"
    plain = array if array.dtype.kind in "biufc" else array.astype(np.float64)
    values = " ".join(np.array2string(plain, separator=", ", max_line_width=10_000).split())
    return f"{name} = {values}" + f", shape {array.shape}" * bool(array.ndim) + f", {array.dtype}"


def run(answer_object, case=0, question: str | None = None) -> Trial:
    """Try an answer before checking it. `case` is the number of a public case, or a dict of sizes for a kernel."""
    row = questions.find(question) if question else only_one(answer_object)
    try:
        source = answer.of_object(answer_object)
    except answer.NotFound as trouble:
        return Trial(error=str(trouble))
    return of_source(row, source, case)


def of_source(question, source: str, case=0) -> Trial:
    """Try the text of an answer's cell."""
    try:
        text = answer.normalise(source)
        answer.require_parses(text)
    except answer.Refused as trouble:
        return Trial(error=f"{trouble}" + f" (line {trouble.line})" * bool(trouble.line))
    evidence = parts.gather(question, text, seed=0)
    trial = RUNS[type(evidence)](evidence, case)
    if isinstance(evidence, KernelEvidence):
        trial.asked = text, question, case
    return trial


def in_words(question, case) -> str:
    """Return a public case as a report names it, or the sizes of one of the learner's own."""
    if isinstance(case, dict):
        return in_full(with_sizes(question, case))
    chosen = question.public[case]
    if isinstance(chosen, Call):
        return written(question, chosen)
    return in_full(chosen) if isinstance(chosen, Case) else chosen.kind


def number_of(case, row) -> int:
    if not isinstance(case, int) or not 0 <= case < len(row.public):
        raise ValueError(
            f"case must be a number from 0 to {len(row.public) - 1} or a dict of sizes, got {case!r}"
        )
    return case


def with_sizes(row, sizes: dict):
    known = set(row.public[0].sizes)
    if not set(sizes) <= known or not all(isinstance(v, int) and v > 0 for v in sizes.values()):
        raise ValueError(f"case must give whole numbers for {', '.join(sorted(known))}, got {sizes!r}")
    return replace(row.public[0], sizes={**row.public[0].sizes, **sizes}, layout={})


def only_one(answer_object):
    """Return the question a function answers, by its name, the entry of exactly one question."""
    name = getattr(answer_object, "__name__", "")
    matching = [q for q in questions.load().values() if q.entry == name]
    if len(matching) != 1:
        raise ValueError(
            'question must be named for this answer, got none. Write run(answer, case, question="gemm_tiling.tiled_gemm")'
        )
    return matching[0]


def run_numpy(evidence, case) -> Trial:
    question = evidence.question
    call = question.public[number_of(case, question)]
    outcome = evidence.call([call], False)
    trial = Trial(printed=evidence.printed)
    if outcome.error:
        failed = from_error(outcome.error, "")
        trial.error, trial.look = failed.came, failed.look
        return trial
    want = question.reference(*call.args)
    trial.outputs = {name: np.array(a) for name, a in outcome.arrays.items()}
    parts = want if isinstance(want, tuple | list) else [want]  # of shapes that may differ
    trial.want = {f"r{i}": np.asarray(part) for i, part in enumerate(parts)}
    ((_, wrong),) = numpy_values.compared(question, [call], outcome)
    if wrong:
        known = numpy_values.confirmed_mistake(evidence, wrong.facts.get("seen", {}))
        trial.error, trial.look = wrong.came, known or where.wrong(evidence, call, wrong) or wrong.look
    return trial


def run_kernel(evidence: KernelEvidence, case) -> Trial:
    question = evidence.question
    chosen = (
        with_sizes(question, case) if isinstance(case, dict) else question.public[number_of(case, question)]
    )
    evidence.cases = {PUBLIC: replace(chosen, sm_count=chosen.sm_count or 16)}
    ran = evidence.run(PUBLIC)
    trial = Trial(printed=evidence.printed)
    if not ran.outcome.error:
        trial.inputs, trial.want = ran.inputs, ran.want
        trial.outputs = {name: ran.output(name).copy() for name in ran.want}
        trial.facts = {"launches": ran.launches, "touched": traffic.touched(ran)}
    try:
        judge_case(question, ran, (), evidence)
    except Failed as failed:
        trial.error, trial.look = failed.came, launch_to_blame(evidence, PUBLIC, failed) or failed.look
    except (Refusal, Unclear) as trouble:
        trial.error = str(trouble)
    return trial


def run_ranks(evidence, case) -> Trial:
    question = evidence.question
    chosen = question.public[number_of(case, question)]
    try:
        (meeting,) = evidence.meet([chosen], False)
    except Failed as failed:  # the whole run, not one rank
        return Trial(failed.came, failed.look)
    trial, wrong = Trial(printed=evidence.printed), rank_values.trouble(question, meeting)
    trial.said = meeting.lines()
    for rank, turn in enumerate(meeting.results):
        trial.outputs |= {f"rank {rank}, {name}": a for name, a in turn.of_result().items()}
    if wrong:
        known = rank_values.known_mistake(question, [meeting])
        trial.error, trial.look = wrong.came, known or wrong.look
    return trial


RUNS = {
    KernelEvidence: run_kernel,
    parts.NumpyEvidence: run_numpy,
    parts.RanksEvidence: run_ranks,
}
