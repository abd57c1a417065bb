"""What the sampling rules do to a distribution, and what it costs to run each rule as a kernel of its own."""

from kernels.machines import MACHINES
from widgets import units
from widgets.charts import Box, Scale, linear, text_width
from widgets.controls import powers_of_two, select, slider, steps, toggle
from widgets.declare import Declaration, Prediction, Stepper
from widgets.sampling_fusion.sampling_chain_model import LOGITS, WORDS, Chain, Result, run
from widgets.scene import (
    WIDE,
    Column,
    Scene,
    about,
    beside_model,
    circle,
    drag,
    figure,
    handle,
    line,
    rect,
    table,
    text,
)

TOP_K = slider("top_k", "Top-k", 8, 1, len(LOGITS), help="Keeps the k best.")
MIN_P = slider(
    "min_p", "Min-p", 0.1, 0.0, 0.5, step=0.05, help="Keeps what has this share of the best one's."
)
RANDOM = slider("u", "Random number of the draw", 0.6, 0.0, 1.0, step=0.05, more=True)
# (time, the row of tokens, the draw, height)
PLACES = {
    True: (Box(64, 30, 470, 74), Box(48, 214, 636, 92), Box(48, 366, 636, 20), 412),
    False: (Box(0, 44, 330, 104), Box(4, 262, 328, 96), Box(4, 430, 328, 20), 478),
}
YOURS = {"naive_s": "your chain", "fused_s": "your kernel"}
RULES = {"top-k": "top-k", "top-p": "top-p", "min-p": "min-p"}  # kernel -> what it cuts by
WARMED = "temperature, softmax"


def _after(r: Result, at: int) -> set[str]:
    """The kernels that have run by step `at`."""
    return {step.name for step in r.naive.steps[: at + 1]}


def _level(r: Result, BARS: Box) -> Scale:
    top = next(p for p in (0.3, 0.4, 0.5, 0.7, 1.0) if p >= max(r.row[0].tempered, r.row[0].plain))
    return linear(0, top, BARS.bottom, BARS.y)


def _bars(r: Result, at: int, box: Box) -> list[dict]:
    """Tokens, best first, as the kernels up to this step have left them."""
    y, pitch, wide, ran = _level(r, box), box.w / len(r.row), box.w > 400, _after(r, at)
    thick = 0.72 * pitch
    marks = [text("bars-title", 0, box.y - 40, "What they do to “The cat sat on the …”", bold=True),
             line("bars-axis", box.x, box.bottom, box.right, box.bottom, "axis")]  # fmt: skip
    for i, one in enumerate(r.row):
        middle, word = box.x + (i + 0.5) * pitch, WORDS[one.token]
        share = one.tempered if WARMED in ran else one.plain
        cut = one.cut_by if one.cut_by in ran else ""
        fate = f"dropped by {cut}" if cut else "still in"
        tip = f"{word}: logit {units.number(one.logit)}, share {units.percent(share)}, {fate}"
        down = box.bottom + (16 if wide or i % 2 == 0 else 30)
        marks += [
            rect(f"bar-{i}", middle - thick / 2, y(share), thick, box.bottom - y(share), "dropped" if cut else "useful", tip),
            text(f"word-{i}", middle, down, word, "muted" if cut else "ink", "small", "middle"),
        ]  # fmt: skip
        if wide and (cut or at == len(r.naive.steps) - 1):
            shown = cut or units.percent(one.final)
            marks.append(
                text(
                    f"fate-{i}",
                    middle,
                    box.bottom + 32,
                    shown,
                    "dropped" if cut else "useful",
                    "small",
                    "middle",
                    bold=True,
                )
            )
    return marks + _cuts(r, ran, y, box, pitch)


def _cuts(r: Result, ran: set[str], y: Scale, box: Box, pitch: float) -> list[dict]:
    """Where the rules cut: top-k and top-p between two tokens, min-p at a height. Two of them are pulled."""
    marks = []
    kept_by_p = sum(one.cut_by in ("", "min-p") for one in r.row)

    def after(k: float) -> float:
        return box.x + min(k, len(r.row)) * pitch

    if kept_by_p < len(r.row) and r.temperature and "top-p" in ran:
        x, words = after(kept_by_p), f"top-p {units.number(r.top_p)}"
        marks.append(line("cut-p", x, box.bottom, x, box.y + 8, "limit", words))
        marks.append(text("cut-p-name", x + 6, box.y + 14, words, "muted", "small"))
    x, k = after(r.top_k), f"top-k {r.top_k}"
    beyond = x > box.right - 80
    marks += about("top_k", line("cut-k", x, box.bottom, x, box.y - 10, "limit", k))
    marks.append(
        text(
            "cut-k-name",
            x - 22 if beyond else x + 22,
            box.y - 8,
            k,
            "ink",
            "small",
            "end" if beyond else "start",
        )
    )
    marks.append(handle("pull-k", x, box.y - 12, "primary", drag(TOP_K, "x", after)))
    best = r.row[0].tempered
    words = f"min-p {units.number(r.min_p)}"
    marks += about(
        "min_p", line("cut-min", box.x, y(r.min_p_level), box.right, y(r.min_p_level), "limit", words)
    )
    marks.append(text("cut-min-name", box.right - 12, y(r.min_p_level) - 6, words, "ink", "small", "end"))
    marks.append(
        handle("pull-min", box.right, y(r.min_p_level), "primary", drag(MIN_P, "y", lambda p: y(p * best)))
    )
    return marks


def _draw(r: Result, at: int, box: Box) -> list[dict]:
    """One draw: the kept shares end to end, and where u falls; u is pulled."""
    if at < len(r.naive.steps) - 3:
        return []
    x = linear(0, 1, box.x, box.right)
    word, marks, left_share = WORDS[r.row[r.drawn].token], [], 0.0
    for i, one in enumerate(r.row):
        left, wide, name = x(left_share), x(left_share + one.final) - x(left_share), WORDS[one.token]
        left_share += one.final
        if one.cut_by:
            continue
        role = "now" if i == r.drawn else "useful"
        marks.append(
            rect(f"share-{i}", left, box.y, wide - 1, box.h, role, f"{name}: {units.percent(one.final)}")
        )
        if wide > text_width(name, "small") + 8:
            marks.append(
                text(f"share-{i}-name", left + wide / 2, box.y + 14, name, "inverse", "small", "middle")
            )
    words = f"u = {units.number(r.u)} draws “{word}”"
    edge = 0.2 if box.w > 400 else 0.35
    anchor = "start" if r.u < edge else "end" if r.u > 1 - edge else "middle"
    return marks + [
        text("u-name", x(r.u), box.bottom + 22, words, "now", "body", anchor, bold=True),
        handle("pull-u", x(r.u), box.y - 2, "now", drag(RANDOM, "x", x)),
    ]


def _axis_top(seconds: float) -> float:
    return next(
        top * 1e-6
        for top in (25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 25000, 50000)
        if top * 1e-6 >= seconds
    )


def _bar(id: str, chain: Chain, upto: int, scale: Scale, y: float) -> list[dict]:
    """Kernel after kernel: a gap to launch it, then the time its bytes take. What has not run is an outline."""
    marks, at, thick = [], 0.0, 26
    for i, step in enumerate(chain.steps):
        launch, memory, end = scale(at), scale(at + step.launch_s), scale(at + step.launch_s + step.memory_s)
        at += step.launch_s + step.memory_s
        launches = f"{step.name}: {step.launches} {'launch' if step.launches == 1 else 'launches'}"
        ran = i <= upto
        marks += about(
            "launches",
            rect(
                f"{id}-launch-{i}", launch, y, memory - launch, thick, "overhead" if ran else "idle", launches
            ),
        )
        work = rect(f"{id}-work-{i}", memory, y, max(0, end - memory - 0.7), thick, "memory" if ran else "idle",
                    f"{step.name}: {units.seconds(step.memory_s)} of reading and writing")  # fmt: skip
        marks += about("bytes", work)
        if end - memory > text_width(step.name, "small") + 8:
            ink, on = ("inverse", "") if ran else ("muted", "idle")
            marks.append(
                text(f"{id}-name-{i}", (memory + end) / 2, y + 17, step.name, ink, "small", "middle", on=on)
            )
    return marks


def _times(r: Result, at: int, measured: dict, box: Box) -> list[dict]:
    """Both in time, and on the axis the GPUs of a fleet that would do nothing else."""
    wide = box.x > 0
    scale = linear(0, _axis_top(max(r.naive.time_s, r.fused.time_s)), box.x, box.right)
    title = f"Time of one step, {r.batch} × {units.count(r.vocabulary)} logits on {r.machine}"
    marks = [
        text("times-title", 0, box.y - 14, title if wide else f"Time of one step on {r.machine}", bold=True)
    ]
    pitch, gap = (36, 4) if wide else (50, 18)
    rows = (("chain", r.naive, at, "launches"), ("fused", r.fused, len(r.naive.steps), "launch"))
    for k, (id, chain, upto, noun) in enumerate(rows):
        y, words = box.y + k * pitch + gap, f"{units.seconds(chain.time_s)}, {chain.launches} {noun}"
        marks += _bar(id, chain, upto, scale, y)
        if wide:
            marks.append(text(f"{id}-name", box.x - 8, y + 18, id, anchor="end"))
            marks.append(text(f"{id}-words", scale(chain.time_s) + 8, y + 18, words, bold=True))
        else:
            marks.append(text(f"{id}-name", 0, y - 5, f"{id}: {words}", bold=True))
    low = box.y + 2 * pitch + 6
    marks.append(line("times-line", box.x, low, box.right, low, "axis"))
    every = 1 if wide else 2
    for i in range(0, 6, every):
        tick = scale.hi * i / 5
        where = "start" if i == 0 and not wide else "middle"
        marks += [
            line(f"times-grid{i}", scale(tick), low, scale(tick), low - 5, "axis"),
            text(f"times-tick{i}", scale(tick), low + 15, units.seconds(tick), "muted", "small", where),
            text(
                f"gpus-{i}",
                scale(tick),
                low + 31,
                units.number(tick * 1e6 * r.gpus_of_each_us),
                "hot",
                "small",
                where,
            ),
        ]
    fleet = f"of {units.count(r.replicas)} GPUs only sample"
    marks.append(
        text("gpus-name", 720 if wide else 340, low + (31 if wide else 47), fleet, "hot", "small", "end")
    )
    for i, key in enumerate(YOURS):
        if key in measured:
            tip = f"{YOURS[key]}: {units.seconds(measured[key])}"
            marks.append(
                circle(
                    f"measured-{i}", scale(measured[key]), box.y + gap + 13 + pitch * i, 6, "measured", tip
                )
            )
    return marks


def _caption(r: Result, at: int) -> str:
    step, many = r.naive.steps[at], r.naive.launches
    before = sum(one.launches for one in r.naive.steps[:at])
    which = (
        f"Kernel {before + 1}" if step.launches == 1 else f"Kernels {before + 1} to {before + step.launches}"
    )
    launched = f"{units.seconds(step.launch_s)} to launch" if step.launch_s else "no launch of its own"
    return (f"{which} of {many}, {step.name}: {launched}, {units.seconds(step.memory_s)} to read and write what the "
            f"fused kernel keeps on the chip.")  # fmt: skip


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
            "time = {bytes} / bandwidth + {launches}",
            f"{{bytes:{units.si_bytes(n.bytes_moved)}}}: {units.seconds(n.memory_s)}, and {{launches:launching {units.seconds(n.launch_s)}}}",
        ),
        (
            "{gpus:GPUs} = time · {tokens_s:steps a second} · {replicas}",
            f"{units.seconds(n.time_s)} · {{tokens_s:{units.number(r.tokens_s)}}} · {{replicas:{units.count(r.replicas)}}} = {gpus}",
        ),
    )  # fmt: skip


def _takeaway(r: Result) -> str:
    launching = r.naive.launch_s / r.naive.time_s
    if r.naive.launch_s <= r.fused.launch_s:
        return (
            "A graph takes the launches away and leaves the bytes: only fusing keeps the logits on the chip."
        )
    if launching > 0.6:
        return "With few rows it is nearly all launching: one kernel is launched once."
    if launching < 0.2:
        return "With many rows it is bytes: each rule reads and writes every logit again, one kernel reads them once."
    return "Sampling is small for a token and runs for every token: read the logits once, launch once."


def frames(r: Result, measured: dict | None = None, width: int = WIDE) -> list[Scene]:
    """One for each kernel of the chain; the last shows all of them done."""
    measured = measured or {}
    times_at, bars_at, draw_at, height = PLACES[width == WIDE]
    naive = figure("a kernel for each rule", r.naive.time_s, units.seconds, "hot")
    fused = figure("one fused kernel", r.fused.time_s, units.seconds, "useful")
    saved = figure(f"of {units.count(r.replicas)} GPUs given back", r.gpus_saved, term="gpus")
    kept = figure("of 12 tokens are left to draw from", r.kept, units.count)
    modelled = {"naive_s": r.naive.time_s, "fused_s": r.fused.time_s}
    same = {
        "summary": f"{kept.text} of 12 tokens are kept; the chain of {r.naive.launches} launches takes {naive.text}, one "
        f"fused kernel {fused.text}, which gives {saved.text} of {units.count(r.replicas)} GPUs back.",
        "takeaway": _takeaway(r),
        "figures": (naive, fused, saved, kept),
        "table": _table(r),
        "height": height,
        "width": width,
        "formula": _formula(r),
        "legend": (
            ("overhead", "launching"),
            ("memory", "reading and writing"),
            ("dropped", "dropped by a rule"),
        ),
        "beside": tuple(
            beside_model(YOURS[key], measured[key], modelled[key], units.seconds)
            for key in YOURS
            if key in measured
        ),
    }
    return [
        Scene(marks=_times(r, at, measured, times_at) + _bars(r, at, bars_at) + _draw(r, at, draw_at),
              caption=_caption(r, at), **same)
        for at in range(len(r.naive.steps))
    ]  # fmt: skip


SIMULATOR = Declaration(
    title="Sampling chain",
    question="Why should a dozen tiny kernels be one?",
    controls=(
        slider("temperature", "Temperature", 0.8, 0.0, 2.0, step=0.1, help="0 takes the best token."),
        TOP_K,
        slider("top_p", "Top-p", 0.9, 0.1, 1.0, step=0.05, help="Keeps the best that hold this share."),
        MIN_P,
        RANDOM,
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
    stepper=Stepper("kernel", frames, lambda r: len(r.naive.steps) - 1),
    prediction=Prediction(
        "A sampling chain takes about 200 µs. Each of 1,000 GPUs runs it 100 times a second. "
        "How many of the GPUs' worth of time goes into sampling?",
        "naive.gpus",
        "GPUs",
    ),
    measures={"naive_s": "time of a step's chain of kernels", "fused_s": "time of a step's one kernel"},
    source="Beyond attention",
)  # fmt: skip
