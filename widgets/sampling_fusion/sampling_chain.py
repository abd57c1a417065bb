"""Show the cost of one kernel for each sampling rule, and the effect of the rules on a distribution."""

from kernels.machines import MACHINES
from widgets import units
from widgets.charts import Box, Scale, linear, text_width
from widgets.controls import powers_of_two, select, slider, steps, toggle
from widgets.declare import Declaration, Prediction
from widgets.sampling_fusion.sampling_chain_model import (
    DEAREST_LAUNCH_US,
    LOGITS,
    WORDS,
    Result,
    Step,
    run,
)
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

LAUNCH = slider("launch_us", "Time of one launch", 5.0, 1.0, DEAREST_LAUNCH_US, step=0.5, unit="µs")
TOP_K = slider(
    "top_k", "Top-k", 8, 1, len(LOGITS), more=True, help="Keeps the k best; 12 of 12 turns the rule off."
)
MIN_P = slider(
    "min_p", "Min-p", 0.1, 0.0, 0.5, step=0.05, more=True, help="Keeps what has this share of the best one's."
)
# the first row of kernels, the distance of rows, the row of tokens, the total height
PLACES = {
    True: (Box(150, 48, 562, 176), 16, Box(40, 346, 582, 48), 428),
    False: (Box(0, 52, 336, 209), 19, Box(4, 416, 306, 74), 526),
}
# A row of the picture and its possible kernels. A kernel that doesn't run is "off", and the row stays.
ROWS = (
    ("clean", ("clean",)),
    (
        "grammar, penalties",
        ("grammar mask", "bias and bans", "repetition penalty", "frequency, presence"),
    ),
    ("sort", ("sort", "row maximum")),
    ("temperature, softmax", ("temperature, softmax",)),
    *((name, (name,)) for name in ("top-k", "running sum", "top-p", "min-p", "noise", "argmax", "gather")),
)
SHORT = {"grammar, penalties": "penalties", "temperature, softmax": "softmax"}  # on a phone
YOURS = {"naive_s": "your chain", "fused_s": "your kernel"}
AXIS_TOPS_US = (
    50,
    100,
    150,
    200,
    300,
    400,
    500,
    750,
    *(n * 10**k for k in (3, 4) for n in (1, 1.5, 2, 3, 4, 5, 7.5)),
)


def _scale(r: Result, box: Box) -> Scale:
    """Return a scale that stays over the launch's slider and every rule's switch. Bytes set it."""
    return linear(0, next(us for us in AXIS_TOPS_US if us * 1e-6 >= r.longest_s) * 1e-6, box.x, box.right)


def _kernel(step: Step, at: float, scale: Scale, y: float, thick: float) -> list[dict]:
    """A gap to launch it, then the time its bytes take."""
    start, memory, end = (scale(at + more) for more in (0, step.launch_s, step.launch_s + step.memory_s))
    id = step.name.replace(" ", "-")
    noun = "launch" if step.launches == 1 else "launches"
    launched = f"{step.name}: {step.launches} {noun}, {units.seconds(step.launch_s)}"
    moved = f"{step.name}: {units.seconds(step.memory_s)} of reading and writing"
    return [
        *about(
            "launches launch_us", rect(f"launch-{id}", start, y, memory - start, thick, "overhead", launched)
        ),
        *about("bytes", rect(f"work-{id}", memory, y, end - memory, thick, "memory", moved)),
    ]


def _chain(r: Result, scale: Scale, box: Box, pitch: float) -> list[dict]:
    """Kernel after kernel, each in its row where the one before has ended."""
    wide, marks, at = box.x > 0, [], 0.0
    ran = {step.name: step for step in r.naive.steps}
    done, thick = scale(r.naive.time_s), pitch - 4
    for i, (name, kernels) in enumerate(ROWS):
        y, began = box.y + i * pitch, at
        here = [ran[kernel] for kernel in kernels if kernel in ran]
        for step in here:
            marks += _kernel(step, at, scale, y, thick)
            at += step.launch_s + step.memory_s
        shown = here[0].name if len(here) == 1 else name
        many = sum(step.launches for step in here)
        shown = SHORT.get(shown, shown) if not wide else shown
        if many > len(here):
            shown += f", {many} {'kernels' if r.graph else 'launches'}" if wide else f" ×{many}"
        said = units.seconds(at - began) if here else "off"
        if wide:
            marks.append(
                text(f"row-{i}", box.x - 8, y + 10, shown, "ink" if here else "muted", "small", "end")
            )
        else:
            said = f"{shown}: {said}"
        room = done - scale(at) - 12
        fits = text_width(said, "small") < room or scale(began) - box.x < text_width(said, "small") + 8
        x, anchor = (scale(at) + 6, "start") if fits else (scale(began) - 6, "end")
        ink = "ink" if here else "muted"
        marks.append(text(f"row-{i}-time", x, y + 10, said, ink, "small", anchor, on="ground"))
    return marks


def _end_of_chain(r: Result, scale: Scale, box: Box, bottom: float) -> list[dict]:
    """Mark the end of the last kernel. Its knob sets the time of a launch."""
    paid = 1 if r.graph else r.naive.launches

    def place(launch_us: float) -> float:
        return scale(r.naive.memory_s + paid * launch_us * 1e-6)

    x, y = place(r.launch_us), box.y - 14
    how = "1 launch" if r.graph else f"{r.naive.launches} launches"
    words = f"{'chain: ' if box.x else ''}{units.seconds(r.naive.time_s)}, {how}"
    if text_width(words, bold=True) > max(box.right + 4 - x, x) - 19:
        words = units.seconds(r.naive.time_s)
    beyond = x + 19 + text_width(words, bold=True) > box.right + 4
    return [
        *about("launch_us", line("chain-end", x, y, x, bottom, "limit", words)),
        text(
            "chain-words",
            x - 19 if beyond else x + 19,
            y + 4,
            words,
            "hot",
            anchor="end" if beyond else "start",
            bold=True,
        ),
        handle("pull-launch", x, y, "primary", drag(LAUNCH, "x", place)),
    ]


def _fused(r: Result, scale: Scale, y: float, thick: float, wide: bool) -> list[dict]:
    words = f"{units.seconds(r.fused.time_s)}, 1 launch: {units.times(r.speedup)} faster"
    end, name = scale(r.fused.time_s), "one fused kernel"
    marks = _kernel(r.fused.steps[0], 0.0, scale, y, thick)
    if wide:
        marks.append(text("fused-name", scale.start - 8, y + 11, name, "useful", "small", "end", bold=True))
    return [
        *marks,
        text("fused-words", end + 8, y + 11, words if wide else f"fused: {words}", "useful", bold=True),
    ]


def _times(r: Result, measured: dict, box: Box, pitch: float) -> list[dict]:
    """Both in time, and on the axis the GPUs of a fleet that would do nothing else."""
    wide, scale, thick = box.x > 0, _scale(r, box), pitch - 4
    below = box.y + len(ROWS) * pitch
    title = f"Time of one step, {r.batch} × {units.count(r.vocabulary)} logits on {r.machine}"
    marks = [
        text("times-title", 0, 14, title if wide else f"Time of one step on {r.machine}", bold=True),
        *_end_of_chain(r, scale, box, below - 4),
        *_chain(r, scale, box, pitch),
        *_fused(r, scale, below + 6, thick, wide),
    ]
    low = below + thick + 12
    marks.append(line("times-line", box.x, low, box.right, low, "axis"))
    for i in range(0, 6, 1 if wide else 2):
        tick = scale.hi * i / 5
        where = "start" if i == 0 and not wide else "middle" if i < 5 else "end"
        gpus = units.number(tick * 1e6 * r.gpus_of_each_us)
        marks += [
            line(f"times-grid{i}", scale(tick), low, scale(tick), low - 5, "axis"),
            text(f"times-tick{i}", scale(tick), low + 15, units.seconds(tick), "muted", "small", where),
            text(f"gpus-{i}", scale(tick), low + 30, gpus, "hot", "small", where),
        ]
    fleet = f"of {units.count(r.replicas)} GPUs only sample"
    if wide:
        marks.append(text("gpus-name", box.x - 14, low + 30, "GPUs that only sample", "hot", "small", "end"))
    else:
        marks.append(text("gpus-name", box.right, low + 46, fleet, "hot", "small", "end"))
    rows = {"naive_s": (box.y - 14, r.naive), "fused_s": (below + 6 + thick / 2, r.fused)}
    for i, (key, (y, _)) in enumerate(rows.items()):
        if key in measured:
            tip = f"{YOURS[key]}: {units.seconds(measured[key])}"
            marks.append(circle(f"measured-{i}", scale(measured[key]), y, 6, "measured", tip))
    return marks


def _level(r: Result, box: Box) -> Scale:
    top = next(p for p in (0.3, 0.4, 0.5, 0.7, 1.0) if p >= r.row[0].tempered)
    return linear(0, top, box.bottom, box.y)


def _tokens(r: Result, box: Box) -> list[dict]:
    """Draw tokens, best first, and the probability that the rules left them."""
    y, pitch, wide = _level(r, box), box.w / len(r.row), box.w > 400
    thick, drawn = 0.72 * pitch, WORDS[r.row[r.drawn].token]
    title, draws = "What the rules do to “The cat sat on the …”", f"u = {units.number(r.u)} draws “{drawn}”"
    marks = [
        text("bars-title", 0, box.y - (36 if wide else 50), title, bold=True),
        text(
            "u-name",
            712 if wide else 0,
            box.y - (36 if wide else 34),
            draws,
            "now",
            "body",
            "end" if wide else "start",
            bold=True,
        ),
        line("bars-axis", box.x, box.bottom, box.right, box.bottom, "axis"),
    ]
    for i, one in enumerate(r.row):
        middle, word, cut = box.x + (i + 0.5) * pitch, WORDS[one.token], one.cut_by
        role = "dropped" if cut else "now" if i == r.drawn else "useful"
        fate = f"dropped by {cut}" if cut else "still in"
        tip = f"{word}: logit {units.number(one.logit)}, share {units.percent(one.tempered)}, {fate}"
        top = y(one.tempered)
        marks += [
            rect(f"bar-{i}", middle - thick / 2, top, thick, box.bottom - top, role, tip),
            text(
                f"word-{i}",
                middle,
                box.bottom + (14 if wide or i % 2 == 0 else 28),
                word,
                "muted" if cut else "ink",
                "small",
                "middle",
            ),
        ]
        if wide:
            shown = cut or units.percent(one.final, 1 if one.final < 0.9995 else 0)
            shown = "0%" if cut == "greedy" else shown
            marks.append(
                text(f"fate-{i}", middle, box.bottom + 28, shown, role, "small", "middle", bold=True)
            )
    return marks + _cuts(r, y, box, pitch)


def _cuts(r: Result, y: Scale, box: Box, pitch: float) -> list[dict]:
    """Mark where the rules cut: top-k and top-p between two tokens, min-p at a height. Two marks have knobs."""
    marks, wide = [], box.w > 400
    kept_by_p = sum(one.cut_by in ("", "min-p") for one in r.row)

    def after(k: float) -> float:
        return box.x + min(k, len(r.row)) * pitch

    if kept_by_p < min(r.top_k, len(r.row)) and r.temperature:
        x, words = after(kept_by_p), f"top-p {units.number(r.top_p)}"
        meets = x < after(r.top_k) < x + text_width(words, "small") + 10  # then on the other side of its line
        place = (x - 6, "end") if meets else (x + 6, "start")
        marks.append(line("cut-p", x, box.bottom, x, box.y + 4, "limit", words))
        marks.append(text("cut-p-name", place[0], box.y + 14, words, "muted", "small", place[1], on="ground"))
    x, k = after(r.top_k), f"top-k {r.top_k}" if r.top_k < len(r.row) else "top-k: off"
    beyond = x > box.right - 80
    where = (x - 22, "end") if beyond else (x + 22, "start")
    marks += about("top_k", line("cut-k", x, box.bottom, x, box.y - 14, "limit", k))
    marks.append(text("cut-k-name", where[0], box.y - 10, k, "ink", "small", where[1]))
    marks.append(handle("pull-k", x, box.y - 14, "primary", drag(TOP_K, "x", after)))
    level, best = y(r.min_p_level), r.row[0].tempered
    words = f"min-p {units.number(r.min_p)}" if r.min_p else "min-p: off"
    marks += about("min_p", line("cut-min", box.x, level, box.right + 12, level, "limit", words))
    named = (box.right + 28, level + 4, "start") if wide else (box.right - 4, level - 6, "end")
    marks.append(text("cut-min-name", named[0], named[1], words, "ink", "small", named[2]))
    marks.append(
        handle("pull-min", box.right + 12, level, "primary", drag(MIN_P, "y", lambda p: y(p * best)))
    )
    return marks


def _table(r: Result):
    columns = (
        "kernel",
        Column("launches", show=units.count),
        Column("launching", "s", units.seconds),
        Column("reading and writing", "s", units.seconds),
    )
    steps = (*r.naive.steps, *r.fused.steps)
    many = {
        one.name: 0 if r.graph and one not in (r.naive.steps[0], *r.fused.steps) else one.launches
        for one in steps
    }
    return table(columns, [(one.name, many[one.name], one.launch_s, one.memory_s) for one in steps])


def _formula(r: Result) -> tuple[tuple[str, str], ...]:
    n, paid = r.naive, 1 if r.graph else r.naive.launches
    each = units.with_unit(r.launch_us, "µs")
    return (
        (
            "time = {bytes} / bandwidth + {launches} · {launch_us:time of one}",
            f"{{bytes:{units.si_bytes(n.bytes_moved)}}}: {units.seconds(n.memory_s)}, and {{launches:{paid}}} · {{launch_us:{each}}}: "
            f"{units.seconds(n.launch_s)}",
        ),
        (
            "{gpus:GPUs} = time · {tokens_s:steps a second} · {replicas}",
            f"{units.seconds(n.time_s)} · {{tokens_s:{units.number(r.tokens_s)}}} · {{replicas:{units.count(r.replicas)}}} = "
            f"{units.number(n.gpus)}",
        ),
    )


def _takeaway(r: Result) -> str:
    if not r.temperature:
        return "At temperature 0 one argmax would do, but this chain sorts and draws all the same."
    launching = r.naive.launch_s / r.naive.time_s
    if r.naive.launch_s <= r.fused.launch_s:
        return "A graph removes the launches but not the bytes. Only fusing keeps the logits on chip."
    if launching > 0.6:
        return "With few rows nearly all the time is launches, and one kernel launches once."
    if launching < 0.2:
        return "With many rows bytes take the time. Each rule moves all logits, one kernel reads them once."
    if not (r.top_k < len(r.row) and r.top_p < 1 and r.min_p):
        again = r.top_k == len(r.row) and r.top_p < 1
        fused = (
            "Without a top-k even the fused kernel reads the logits again."
            if again
            else "The others still go through memory one by one."
        )
        return f"A rule that is off saves its kernel. {fused}"
    share = units.percent(launching, 0)
    return f"Launches are {share} of the chain's time, bytes the rest. One kernel launches once and reads the logits once."


def scene(r: Result, measured: dict | None = None, width: int = WIDE) -> Scene:
    measured = measured or {}
    times_at, pitch, tokens_at, height = PLACES[width == WIDE]
    naive = figure("time with a kernel per rule", r.naive.time_s, units.seconds, "hot")
    fused = figure("time with one fused kernel", r.fused.time_s, units.seconds, "useful")
    gpus = figure(
        f"GPUs of {units.count(r.replicas)} that only sample", r.naive.gpus, units.number, "hot", "gpus"
    )
    left = figure("with one fused kernel", r.fused.gpus, units.number, "useful")
    modelled = {"naive_s": r.naive.time_s, "fused_s": r.fused.time_s}
    return Scene(
        summary=f"The chain of {r.naive.launches} launches takes {naive.text}, one fused kernel {fused.text}, so "
        f"{gpus.text} of {units.count(r.replicas)} GPUs only sample, or {left.text} with one kernel; the rules keep {r.kept} of {len(r.row)} tokens.",
        takeaway=_takeaway(r),
        marks=_times(r, measured, times_at, pitch) + _tokens(r, tokens_at),
        figures=(gpus, left, naive, fused),
        table=_table(r),
        height=height,
        width=width,
        formula=_formula(r),
        legend=(
            ("overhead", "launching"),
            ("memory", "reading and writing"),
            ("dropped", "dropped by a rule"),
            ("now", "drawn"),
        ),
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
        LAUNCH,
        powers_of_two("batch", "Requests in the batch", 32, 1, 256),
        slider(
            "temperature",
            "Temperature",
            0.8,
            0.0,
            2.0,
            step=0.1,
            help="0 takes the best token. Moves the tokens, not the times.",
        ),
        slider(
            "top_p",
            "Top-p",
            0.9,
            0.1,
            1.0,
            step=0.05,
            help="Keeps the best that hold this share; 1 turns it off, and its kernels with it.",
        ),
        TOP_K,
        MIN_P,
        slider("u", "Random number of the draw", 0.6, 0.0, 1.0, step=0.05, more=True),
        steps("vocabulary", "Vocabulary", 128256, (32000, 50257, 128256, 151936, 256000), more=True),
        toggle("penalties", "Grammar, bias and penalties too", more=True, help="Four kernels more."),
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
)
