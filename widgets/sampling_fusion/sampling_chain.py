"""What the sampling rules do to a distribution, and what it costs to run each rule as a kernel of its own."""

from kernels.machines import MACHINES
from widgets import units
from widgets.charts import Box, Part, Scale, axis_x, bars_across, linear, text_width
from widgets.controls import powers_of_two, select, slider, steps, toggle
from widgets.declare import Declaration, Prediction
from widgets.sampling_fusion.sampling_chain_model import LOGITS, WORDS, Chain, Result, run
from widgets.scene import Column, Scene, beside_model, circle, figure, line, rect, table, text

BARS, DRAW, TIMES = Box(48, 70, 636, 112), Box(48, 248, 636, 22), Box(64, 350, 440, 64)
YOURS = {"naive_s": "your chain", "fused_s": "your kernel"}


def _level(r: Result) -> Scale:
    top = next(p for p in (0.3, 0.4, 0.5, 0.7, 1.0) if p >= max(r.row[0].tempered, r.row[0].plain))
    return linear(0, top, BARS.bottom, BARS.y)


def _bars(r: Result) -> list[dict]:
    """Tokens, best first: their share at this temperature, and whether it survives the rules."""
    y, pitch = _level(r), BARS.w / len(r.row)
    wide = 0.72 * pitch
    marks = [
        text("bars-title", 0, 16, "The cat sat on the …", bold=True),
        text("plain-name", 160, 16, "▬ the share at temperature 1", "secondary", "small"),
        line("bars-axis", BARS.x, BARS.bottom, BARS.right, BARS.bottom, "axis"),
    ]
    for i, one in enumerate(r.row):
        middle, word = BARS.x + (i + 0.5) * pitch, WORDS[one.token]
        x, top, plain = middle - wide / 2, y(one.tempered), y(one.plain)
        fate = f"dropped by {one.cut_by}" if one.cut_by else f"drawn with {units.percent(one.final)}"
        tip = f"{word}: logit {units.number(one.logit)}, share {units.percent(one.tempered)}, {fate}"
        role = "dropped" if one.cut_by else "useful"
        marks += [
            rect(f"bar-{i}", x, top, wide, BARS.bottom - top, role, tip),
            line(f"plain-{i}", x - 3, plain, x + wide + 3, plain, "secondary", f"{word} at temperature 1"),
            text(
                f"word-{i}",
                middle,
                BARS.bottom + 16,
                word,
                "muted" if one.cut_by else "ink",
                "small",
                "middle",
            ),
        ]
        shown = one.cut_by or units.percent(one.final)
        marks.append(text(f"fate-{i}", middle, BARS.bottom + 32, shown, role, "small", "middle", bold=True))
    return marks + _cuts(r, y, pitch)


def _cuts(r: Result, y: Scale, pitch: float) -> list[dict]:
    """Where the rules cut: top-k and top-p between two tokens, min-p at a height."""
    marks = []
    kept_by_p = sum(one.cut_by in ("", "min-p") for one in r.row)
    cuts = [("k", min(r.top_k or len(r.row), len(r.row)), f"top-k {r.top_k}", 36)]
    cuts.append(("p", kept_by_p, f"top-p {units.number(r.top_p)}", 52))
    for id, after, words, high in cuts:
        if after >= len(r.row) or r.temperature == 0:
            continue
        x = BARS.x + after * pitch
        marks.append(line(f"cut-{id}", x, BARS.bottom, x, high - 8, "limit", words))
        marks.append(text(f"cut-{id}-name", x + 6, high + 2, words, "muted", "small"))
    if r.min_p and r.temperature:
        at, words = y(r.min_p_level), f"min-p: {units.number(r.min_p)} of the best"
        marks.append(line("cut-min", BARS.x, at, BARS.right, at, "limit", words))
        marks.append(text("cut-min-name", BARS.right, at - 6, words, "muted", "small", "end"))
    return marks


def _draw(r: Result) -> list[dict]:
    """One draw: the kept shares end to end, and where u falls."""
    x = linear(0, 1, DRAW.x, DRAW.right)
    word = WORDS[r.row[r.drawn].token]
    marks = [text("draw-title", 0, DRAW.y - 8, "one draw from what is left", bold=True)]
    at = 0.0
    for i, one in enumerate(r.row):
        left, wide, name = x(at), x(at + one.final) - x(at), WORDS[one.token]
        at += one.final
        if one.cut_by:
            continue
        role = "now" if i == r.drawn else "useful"
        marks.append(
            rect(f"share-{i}", left, DRAW.y, wide - 1, DRAW.h, role, f"{name}: {units.percent(one.final)}")
        )
        if wide > text_width(name, "small") + 8:
            marks.append(
                text(f"share-{i}-name", left + wide / 2, DRAW.y + 15, name, "inverse", "small", "middle")
            )
    words = f"u = {units.number(r.u)} draws “{word}”"
    anchor = "start" if r.u < 0.2 else "end" if r.u > 0.8 else "middle"
    return marks + [
        line("u-above", x(r.u), DRAW.y - 7, x(r.u), DRAW.y, "now"),
        line("u-below", x(r.u), DRAW.bottom, x(r.u), DRAW.bottom + 7, "now"),
        text("u-name", x(r.u), DRAW.bottom + 20, words, "now", "body", anchor, bold=True),
    ]


def _axis_top(seconds: float) -> float:
    return next(
        top * 1e-6
        for top in (25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 25000, 50000)
        if top * 1e-6 >= seconds
    )


def _parts(chain: Chain) -> list[Part]:
    parts = []
    for step in chain.steps:
        memory = units.seconds(step.memory_s)
        launches = f"{step.name}: {step.launches} {'launch' if step.launches == 1 else 'launches'}"
        parts.append(Part(step.launch_s, "overhead", launches))
        parts.append(Part(step.memory_s, "memory", f"{step.name}: {memory} of reading and writing"))
    return parts


def _named_parts(chain: Chain, scale: Scale) -> list[dict]:
    """The names of the steps that are long enough to hold theirs."""
    marks, at = [], 0.0
    for i, step in enumerate(chain.steps):
        start, at = at + step.launch_s, at + step.launch_s + step.memory_s
        wide = scale(at) - scale(start)
        if wide > text_width(step.name, "small") + 8:
            middle = scale(start) + wide / 2
            marks.append(text(f"part-{i}", middle, TIMES.y + 20, step.name, "inverse", "small", "middle"))
    return marks


def _times(r: Result, measured: dict) -> list[dict]:
    """Both chains in time; the same axis, in GPUs of a fleet that do nothing else."""
    scale = linear(0, _axis_top(max(r.naive.time_s, r.fused.time_s)), TIMES.x, TIMES.right)
    title = f"time of one step, {r.batch} × {units.count(r.vocabulary)} logits on {r.machine}"
    rows = [
        (name, _parts(chain), f"{units.seconds(chain.time_s)}, {chain.launches} {noun}")
        for name, chain, noun in (("chain", r.naive, "launches"), ("fused", r.fused, "launch"))
    ]
    marks = [
        text("times-title", 0, 326, title, bold=True),
        text("launch-key", 64, 344, "■ launching", "overhead", "small"),
        text("memory-key", 150, 344, "■ reading and writing", "memory", "small"),
    ]
    ticks = [scale.hi * q / 5 for q in range(6)]
    marks += axis_x("times", scale, TIMES.bottom + 4, top=TIMES.y, ticks=ticks, show=units.seconds)
    marks += bars_across("times", rows, TIMES, scale)
    marks += _named_parts(r.naive, scale)
    for i, tick in enumerate(ticks):
        gpus = units.number(tick * 1e6 * r.gpus_of_each_us)
        marks.append(text(f"gpus-{i}", scale(tick), TIMES.bottom + 38, gpus, "hot", "small", "middle"))
    fleet = f"of {units.count(r.replicas)} GPUs only sample"
    marks.append(text("gpus-name", TIMES.right + 26, TIMES.bottom + 38, fleet, "hot", "small"))
    for i, key in enumerate(YOURS):
        if key in measured:
            tip = f"{YOURS[key]}: {units.seconds(measured[key])}"
            marks.append(
                circle(f"measured-{i}", scale(measured[key]), TIMES.y + 16 + 32 * i, 6, "measured", tip)
            )
    return marks


def _table(r: Result):
    columns = ("token", "logit", Column("at temperature 1", show=units.percent),
               Column("at this one", show=units.percent), "dropped by", Column("drawn with", show=units.percent))  # fmt: skip
    rows = [
        (WORDS[one.token], one.logit, one.plain, one.tempered, one.cut_by or "kept", one.final)
        for one in r.row
    ]
    return table(columns, rows)


def _formula(r: Result) -> tuple[tuple[str, str], ...]:
    n, gpus = r.naive, units.number(r.naive.gpus)
    return (
        (
            "time = bytes / bandwidth + launches",
            f"{units.si_bytes(n.bytes_moved)}: {units.seconds(n.memory_s)}, and launching {units.seconds(n.launch_s)}",
        ),
        (
            "GPUs = time · steps a second · replicas",
            f"{units.seconds(n.time_s)} · {units.number(r.tokens_s)} · {units.count(r.replicas)} = {gpus}",
        ),
    )


def scene(r: Result, measured: dict | None = None) -> Scene:
    measured = measured or {}
    naive = figure("a kernel for each rule", r.naive.time_s, units.seconds, "hot")
    fused = figure("one fused kernel", r.fused.time_s, units.seconds, "useful")
    saved = figure(f"of {units.count(r.replicas)} GPUs given back", r.gpus_saved)
    kept = figure("of 12 tokens are left to draw from", r.kept, units.count)
    modelled = {"naive_s": r.naive.time_s, "fused_s": r.fused.time_s}
    return Scene(
        summary=f"{kept.text} of 12 tokens are kept; the chain of {r.naive.launches} launches takes {naive.text}, one "
        f"fused kernel {fused.text}, which gives {saved.text} of {units.count(r.replicas)} GPUs back.",
        takeaway="Sampling is small for a token and runs for every token: read the logits once, launch once.",
        marks=_bars(r) + _draw(r) + _times(r, measured),
        figures=(naive, fused, saved, kept),
        table=_table(r),
        height=458,
        formula=_formula(r),
        beside=tuple(
            beside_model(YOURS[key], measured[key], modelled[key], units.seconds)
            for key in YOURS
            if key in measured
        ),
    )


SIMULATOR = Declaration(
    title="Sampling chain",
    question="Why should a dozen tiny kernels be one?",
    controls=(
        slider("temperature", "Temperature", 0.8, 0.0, 2.0, step=0.1, help="0 takes the best token."),
        slider("top_k", "Top-k", 8, 1, len(LOGITS), help="Keeps the k best."),
        slider("top_p", "Top-p", 0.9, 0.1, 1.0, step=0.05, help="Keeps the best that hold this share."),
        slider("min_p", "Min-p", 0.1, 0.0, 0.5, step=0.05, help="Keeps what has this share of the best one's."),
        slider("u", "Random number of the draw", 0.6, 0.0, 1.0, step=0.05, more=True),
        powers_of_two("batch", "Requests in the batch", 32, 1, 256, more=True),
        steps("vocabulary", "Vocabulary", 128256, (32000, 50257, 128256, 151936, 256000), more=True),
        toggle("penalties", "Grammar, bias and penalties too", more=True, help="Counted in the costs."),
        toggle("graph", "In a captured graph", more=True, help="The chain is launched once; its bytes stay."),
        slider("tokens_s", "Steps a second on a replica", 100, 10, 200, step=10, more=True),
        powers_of_two("replicas", "GPUs in the fleet", 1000, 1, 4096, more=True),
        select("machine_name", "GPU", "H200", list(MACHINES), more=True),
    ),
    presets={
        "A chain of 13 launches": {},
        "One request": {"batch": 1},
        "Captured graph": {"graph": True},
        "Penalties, grammar": {"penalties": True},
        "Hot, top-p alone": {"temperature": 1.6, "top_k": 12, "top_p": 0.8, "min_p": 0.0},
    },
    run=run,
    scene=scene,
    prediction=Prediction(
        "A sampling chain takes about 200 µs. Each of 1,000 GPUs runs it 100 times a second. "
        "How many of the GPUs' worth of time goes into sampling?",
        "naive.gpus",
        "GPUs",
    ),
    measures={"naive_s": "time of a step's chain of kernels", "fused_s": "time of a step's one kernel"},
    source="Beyond attention",
)  # fmt: skip
