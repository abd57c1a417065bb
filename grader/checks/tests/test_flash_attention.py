"""Each common mistake of attention, made on purpose in the solution, is told by its own sentence."""

from pathlib import Path

import pytest

from grader import questions
from grader.judge import parts
from grader.judge.evidence import Evidence
from grader.judge.record import FAIL
from grader.notebooks import text

SOLUTIONS = Path(__file__).parents[3] / "solutions/05_flash_attention"
if not SOLUTIONS.exists():
    pytest.skip("solutions/, which is not handed out", allow_module_level=True)

SCORE_MASK = "(keys[None, :] <= place[:, None]) & (keys[None, :] < N)"
DECODE_WEIGHT = "weight = tl.exp2(m - tl.max(m, 0))"
ACC = "acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])"
NO_MAXIMUM = (
    ("m_new = tl.maximum(m, tl.max(s, 1))", "m_new = tl.zeros((BLOCK_M,), tl.float32)"),
    ("exp2(m - m_new)", "exp2(m_new)"),
)
# question: {mistake: what is exchanged in its solution}
MADE = {
    "online_softmax": {
        "no rescale": [("total = total * rescale", "total = total")],
        "tile maximum": [("m_new = max(m, tile.max())", "m_new = tile.max()")],
        "first factor": [("states = -np.inf, 0.0, []", "states = -1e300, 0.0, []"), ("rescale = np.exp(m - m_new)", "rescale = np.exp(m - m_new) if m > -1e300 else 1.0")],
        "factor upside down": [("np.exp(m - m_new)", "(np.exp(m_new - m) if m > -np.inf else 0.0)")],
    },
    "tiled_attention": {
        "no scale": [("q.shape[-1] ** -0.5", "1.0")],
        "no division": [("return out / total[:, None]", "return out")],
        "no rescale": [("total = total * rescale", "total = total"), ("out = out * rescale[:, None]", "out = out")],
    },
    "attention_bytes": {
        "written only": [("4 * heads * length**2", "2 * heads * length**2")],
        "one head": [("tiled = 4 * heads", "heads = 1\n    tiled = 4 * heads")],
        "other order": [("return tiled + scores, tiled", "return tiled, tiled + scores")],
    },
    "causal_tiles": {
        "no skipping": [("min(first + block_m, length)", "length")],
        "square tiles": [("math.ceil(min(first + block_m, length) / block_n)", "first // block_m + 1")],
        "cut off": [("math.ceil(min(first + block_m, length) / block_n)", "min(first + block_m, length) // block_n")],
    },
    "forward": {
        "beyond fp16": [("acc = tl.zeros((BLOCK_M, D), tl.float32)", "acc = tl.zeros((BLOCK_M, D), tl.float16)"), (ACC, "acc = (acc * alpha[:, None] + tl.dot(p.to(v.dtype), v)).to(tl.float16)")],
        "no maximum": NO_MAXIMUM,
        "no mask": [(SCORE_MASK, "keys[None, :] < N")],
        "no scale": [("(scale * 1.44", "(1.44")],
        "mask from the start": [("place = offs_m + N - M", "place = offs_m")],
        "interleaved heads": [("head // (H // G)", "head % G")],
        "strictly causal": [("<= place", "< place")],
        "masked with zero": [(f's = tl.where({SCORE_MASK}, s, float("-inf"))', f"s = tl.where({SCORE_MASK}, s, 0.0)")],
        "no division": [("acc / l[:, None]", "acc")],
        "no rescale": [("alpha = tl.exp2(m - m_new)", "alpha = tl.full((BLOCK_M,), 1.0, tl.float32)")],
        "NaN": [("<= place[:, None])", "<= place[:, None]) & (keys[None, :] > 8)")],
    },
    "split_decode": {
        "beyond fp16": [("acc = tl.zeros((GROUP, D), tl.float32)", "acc = tl.zeros((GROUP, D), tl.float16)"), (ACC, "acc = (acc * alpha[:, None] + tl.dot(p.to(v.dtype), v)).to(tl.float16)")],
        "no scale": [("(scale * 1.44", "(1.44")],
        "interleaved heads": [("heads = group * (H // G) + offs_g", "heads = group + G * offs_g")],
        "padding counts": [('tl.where(keys[None, :] < N, tl.dot(q, k) * (scale * 1.4426950408889634), float("-inf"))', "tl.dot(q, k) * (scale * 1.4426950408889634)")],
        "no weights": [(DECODE_WEIGHT, "weight = tl.where(mask, 1.0, 0.0)")],
        "NaN": [(DECODE_WEIGHT, "weight = tl.exp2(m - m)")],
    },
    "window_softcap": {
        "no window": [("& (keys[None, :] >= place - W)", ""), ("max(0, tile * BLOCK_M + N - M - W)", "0 * tile")],
        "one key less": [(">= place - W", "> place - W")],
        "no cap": [("s = softcap * (1 - 2 / (tl.exp(2 * x) + 1))", "s = softcap * x")],
        "cap after the mask": [('s = tl.where(seen, s, float("-inf"))', "s = tl.where(keys[None, :] < N, tl.where(seen, s, -softcap), float('-inf'))")],
        "cap before the scale": [("(scale / softcap)", "(1.0 / softcap)"), ("s = softcap * (1", "s = scale * softcap * (1")],
        "NaN": [('base = tl.where(m_new == float("-inf"), 0.0, m_new)', "base = m_new")],
    },
    "backward": {
        "beyond fp16": [("dv = tl.zeros((BLOCK_N, D), tl.float32)", "dv = tl.zeros((BLOCK_N, D), tl.float16)"), ("dv = tl.dot(pt.to(do.dtype), do, dv)", "dv = (dv + tl.dot(pt.to(do.dtype), do)).to(tl.float16)")],
        "mask from the start": [("<= rows[:, None] + N - M", "<= rows[:, None]")],
        "not normalised": [("* scale - lse[:, None]", "* scale"), ("* scale - lse[None, :]", "* scale")],
        "no scale": [("dq * scale", "dq")],
        "no mask": [("tl.where((keys[None, :] <= rows[:, None] + N - M) & (keys[None, :] < N), p, 0.0)", "tl.where(keys[None, :] < N, p, 0.0)")],
        "no delta": [("(tl.dot(do, tl.trans(v)) - delta[:, None])", "tl.dot(do, tl.trans(v))")],
    },
}  # fmt: skip


def answers() -> dict[str, str]:
    """The solution's own cells."""
    notebooks = [
        text.read(path.read_text("utf-8"), lambda name: 1)[0] for path in sorted(SOLUTIONS.glob("*.md"))
    ]
    return {cell.id: cell.source for notebook in notebooks for cell in notebook.cells}


ANSWERS = answers()
ROWS = [(name, mistake) for name, made in MADE.items() for mistake in made]


@pytest.mark.parametrize("name, mistake", ROWS, ids=[" ".join(row) for row in ROWS])
def test_a_mistake_made_is_a_mistake_told(name, mistake):
    question, source = questions.find(f"flash_attention.{name}"), ANSWERS[name]
    for before, after in MADE[name][mistake]:
        assert before in source, before
        source = source.replace(before, after)
    judged = parts.judge(Evidence(question, source, seed=7), question.parts[0])
    sentence = {m.name: m.sentence for m in question.mistakes}[mistake]
    assert judged.state == FAIL and judged.look == sentence, (judged.came, judged.look)


@pytest.mark.parametrize("name", MADE)
def test_every_mistake_of_the_table_is_made(name):
    assert set(MADE[name]) == {m.name for m in questions.find(f"flash_attention.{name}").mistakes}


def traffic_of(name, *exchanged):
    question, source = questions.find(f"flash_attention.{name}"), ANSWERS[name]
    for before, after in exchanged:
        assert before in source, before
        source = source.replace(before, after)
    part = next(p for p in question.parts if p.name == "traffic")
    return parts.judge(Evidence(question, source, seed=7), part)


WASTE = {
    "no causal end": ("forward", [("min(N, (tile + 1) * BLOCK_M + N - M)", "N + 0 * tile")], "no key beyond its own last row"),
    "no start of the window": ("window_softcap", [("max(0, tile * BLOCK_M + N - M - W)", "0 * tile")], "the start of the loop"),
    "no splits": ("split_decode", [("wanted = triton.cdiv(2 * p.sm_count, p.B * p.G)", "wanted = 1")], "most multiprocessors sleep"),
    # programs that only combine do not count as readers of the cache
    "many that combine": ("split_decode", [
        ("wanted = triton.cdiv(2 * p.sm_count, p.B * p.G)", "wanted = 1"), ('"grid": (rows,)', '"grid": (rows, 64)'),
        ("o_ptr.dtype.element_ty))", "o_ptr.dtype.element_ty), mask=(offs_d < D) & (tl.program_id(1) == 0))"),
    ], "most multiprocessors sleep"),
}  # fmt: skip


@pytest.mark.parametrize("waste", WASTE)
def test_right_values_with_wasted_bytes_fail_the_traffic_alone(waste):
    name, exchanged, look = WASTE[waste]
    judged = traffic_of(name, *exchanged)
    assert judged.state == FAIL and look in judged.look, (judged.came, judged.look)
