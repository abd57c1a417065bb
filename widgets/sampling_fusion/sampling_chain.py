"""Show the time of a chain of sampling kernels, and the bytes and launches that one kernel saves."""

from kernels.machines import MACHINES
from widgets import units
from widgets.charts import Box, Scale, linear, steady, text_width
from widgets.controls import powers_of_two, select, slider, steps, toggle
from widgets.declare import Declaration, Prediction
from widgets.sampling_fusion.sampling_chain_model import DEAREST_LAUNCH_US, Result, Step, run
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
# the first row of kernels, the distance of rows, the total height
PLACES = {True: (Box(150, 52, 562, 0), 22, 368), False: (Box(0, 56, 336, 0), 24, 398)}
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
    """Return a scale, set by the bytes, that stays the same over the launch's slider and every rule's switch."""
    top = next(us for us in AXIS_TOPS_US if us * 1e-6 >= r.longest_s) * 1e-6
    return linear(0, steady("time", top), box.x, box.right)


def _kernel(step: Step, at: float, scale: Scale, y: float, thick: float) -> list[dict]:
    """Draw a gap to launch the kernel, then the time its bytes take."""
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


def _took(time_s: float) -> str:
    """Say a kernel's time. In a graph a few bytes take almost none, and no kernel is as short as bandwidth says."""
    return units.seconds(time_s) if time_s > 1e-8 else "almost 0"


def _chain(r: Result, scale: Scale, box: Box, pitch: float) -> list[dict]:
    """Draw kernel after kernel, each in its row where the kernel before has ended."""
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
        said = _took(at - began) if here else "off"
        if wide:
            marks.append(
                text(f"row-{i}", box.x - 8, y + thick - 5, shown, "ink" if here else "muted", "small", "end")
            )
        else:
            said = f"{shown}: {said}"
        room = done - scale(at) - 12
        fits = text_width(said, "small") < room or scale(began) - box.x < text_width(said, "small") + 8
        x, anchor = (scale(at) + 6, "start") if fits else (scale(began) - 6, "end")
        ink = "ink" if here else "muted"
        marks.append(text(f"row-{i}-time", x, y + thick - 5, said, ink, "small", anchor, on="ground"))
    return marks


def _end_of_chain(r: Result, scale: Scale, box: Box, bottom: float) -> list[dict]:
    """Mark the end of the last kernel. Its knob sets the time of a launch."""

    def place(launch_us: float) -> float:
        return scale(r.naive.memory_s + r.naive.paid * launch_us * 1e-6)

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
    """Draw the one kernel, which saves the chain's other bytes and the chain's other launches."""
    words = f"{units.seconds(r.fused.time_s)}, 1 launch: {units.times(r.speedup)} as fast"
    end, low = scale(r.fused.time_s), y + thick - 5
    marks = _kernel(r.fused.steps[0], 0.0, scale, y, thick)
    if wide:
        marks.append(
            text("fused-name", scale.start - 8, low, "one fused kernel", "useful", "small", "end", bold=True)
        )
    said = words if wide else f"fused: {words}"
    return [*marks, text("fused-words", end + 8, low, said, "useful", bold=True, on="ground")]


def _answer(r: Result, scale: Scale, box: Box, pitch: float) -> list[dict]:
    """Write how much faster one kernel is into the room that the axis leaves for a pull."""
    wide, x, y = box.x > 0, scale(r.naive.time_s), box.y + 7 * pitch
    size, said = "huge" if wide else "big", units.times(r.speedup)
    if box.right - x < max(text_width(said, size, True), text_width("as fast in one", "small", True)) + 24:
        return []
    return [
        text("answer", box.right, y, said, "useful", size, "end", True),
        text("answer-name", box.right, y + 18, "as fast in one", "useful", "small", "end", True),
    ]


def _saved(r: Result, scale: Scale, y: float, thick: float, wide: bool) -> list[dict]:
    """Draw the difference of the two times, by its causes."""
    start, marks = r.fused.time_s, []
    between = start + r.saved_memory_s
    if wide:
        name = f"saved: {units.seconds(r.saved_s)}"
        marks.append(
            text("saved-name", scale.start - 8, y + thick - 5, name, "ink", "small", "end", bold=True)
        )
    for id, role, noun, left, right in (
        ("bytes", "memory", "bytes", start, between),
        ("launches", "overhead", "launches", between, start + r.saved_s),
    ):
        words = f"{noun}: {units.seconds(right - left)}" if right > left else ""
        x, x2 = scale(left), scale(right)
        marks.append(rect(f"saved-{id}", x, y, x2 - x, thick, role, f"saved in {words}" if words else ""))
        said = next(
            (one for one in (words, words.split(": ")[-1]) if text_width(one, "small", True) + 14 < x2 - x),
            "",
        )
        if said:
            marks.append(
                text(
                    f"saved-{id}-words",
                    (x + x2) / 2,
                    y + thick - 5,
                    said,
                    "inverse",
                    "small",
                    "middle",
                    True,
                    role,
                )
            )
    return marks


def _picture(r: Result, measured: dict, box: Box, pitch: float) -> list[dict]:
    """Draw the chain and the one kernel on one axis of time, one below the other."""
    wide, scale, thick = box.x > 0, _scale(r, box), pitch - 5
    below = box.y + len(ROWS) * pitch + 5
    title = f"Time of one step, {r.batch} × {units.count(r.vocabulary)} logits on {r.machine}"
    low = below + 2 * pitch + 6
    marks = [
        text("times-title", 0, 14, title if wide else f"Time of one step on {r.machine}", bold=True),
        *_end_of_chain(r, scale, box, below + 2 * pitch - 5),
        *_chain(r, scale, box, pitch),
        *_fused(r, scale, below, thick, wide),
        *_saved(r, scale, below + pitch, thick, wide),
        *_answer(r, scale, box, pitch),
        line("times-line", box.x, low, box.right, low, "axis"),
    ]
    for i in range(0, 6, 1 if wide else 2):
        tick = scale.hi * i / 5
        where = "start" if i == 0 and not wide else "middle" if i < 5 else "end"
        marks += [
            line(f"times-grid{i}", scale(tick), low, scale(tick), low - 5, "axis"),
            text(f"times-tick{i}", scale(tick), low + 15, units.seconds(tick), "muted", "small", where),
        ]
    rows = {"naive_s": box.y - 14, "fused_s": below + thick / 2}
    for i, (key, y) in enumerate(rows.items()):
        if key in measured:
            tip = f"{YOURS[key]}: {units.seconds(measured[key])}"
            marks.append(circle(f"measured-{i}", scale(measured[key]), y, 6, "measured", tip))
    return marks


def _table(r: Result):
    columns = (
        "kernel",
        Column("launches", show=units.count),
        Column("launching", "s", units.seconds),
        Column("reading and writing", "s", _took),
        Column("together", "s", _took),
    )

    def row(one: Step, first: Step):
        paid = one.launches if one is first or not r.graph else 0
        return one.name, paid, one.launch_s, one.memory_s, one.time_s

    rows = [row(one, r.naive.steps[0]) for one in r.naive.steps]
    rows.append(("the chain", r.naive.paid, r.naive.launch_s, r.naive.memory_s, r.naive.time_s))
    return table(columns, [*rows, row(r.fused.steps[0], r.fused.steps[0])])


def _formula(r: Result) -> tuple[tuple[str, str], ...]:
    n = r.naive
    each = units.with_unit(r.launch_us, "µs")
    return (
        (
            "time = {bytes} / bandwidth + {launches} · {launch_us:time of one}",
            f"{{bytes:{units.si_bytes(n.bytes_moved)}}}: {units.seconds(n.memory_s)}, and {{launches:{n.paid}}} · {{launch_us:{each}}}: "
            f"{units.seconds(n.launch_s)}",
        ),
        (
            "{gpus:GPUs} = time · {tokens_s:steps a second} · {replicas}",
            f"{units.seconds(n.time_s)} · {{tokens_s:{units.number(r.tokens_s)}}} · {{replicas:{units.count(r.replicas)}}} = "
            f"{units.number(n.gpus)}",
        ),
    )


def _takeaway(r: Result) -> str:
    """Credit bytes and launches with their own gains."""
    bytes_s, launch_s = units.seconds(r.saved_memory_s), units.seconds(r.saved_launch_s)
    if r.fused_reads > 1:
        return f"Without top-k, the one kernel reads each row {units.number(r.fused_reads)} times to find where top-p cuts."
    if not r.saved_launch_s:
        return f"The graph has saved the launches. One kernel still saves {bytes_s} of reading and writing."
    share = units.percent(r.memory_share, 0)
    if r.memory_share > 0.5:
        return f"Most of the gain is bytes, {bytes_s} ({share}), since no row is sorted or written back. Launches give {launch_s}."
    return f"Most of the gain is launches, {launch_s}, because one is left of {r.naive.launches}. Bytes give {bytes_s} ({share})."


def scene(r: Result, measured: dict | None = None, width: int = WIDE) -> Scene:
    measured = measured or {}
    at, pitch, height = PLACES[width == WIDE]
    naive = figure("with a kernel for each rule", r.naive.time_s, units.seconds, "hot")
    fused = figure("with one fused kernel", r.fused.time_s, units.seconds, "useful")
    gpus = figure(
        f"of {units.count(r.replicas)} GPUs do nothing but sample",
        r.naive.gpus,
        units.number,
        "ink",
        "gpus",
    )
    modelled = {"naive_s": r.naive.time_s, "fused_s": r.fused.time_s}
    return Scene(
        summary=f"The chain of {r.naive.launches} kernels takes {naive.text}, one fused kernel {fused.text}. "
        f"{gpus.text} of {units.count(r.replicas)} GPUs do nothing but sample with the chain.",
        takeaway=_takeaway(r),
        marks=_picture(r, measured, at, pitch),
        figures=(naive, fused, gpus),
        table=_table(r),
        height=height,
        width=width,
        formula=_formula(r),
        legend=(("overhead", "launching, with nothing to hide it"), ("memory", "reading and writing")),
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
        toggle("graph", "In a captured graph", help="The chain is launched once. Its bytes stay."),
        toggle("top_k", "Top-k", True, more=True),
        toggle("top_p", "Top-p", True, more=True, help="A rule that is off has no kernel."),
        toggle("min_p", "Min-p", True, more=True),
        toggle("penalties", "Grammar, bias and penalties too", more=True, help="Four kernels more."),
        steps("vocabulary", "Vocabulary", 128256, (32000, 50257, 128256, 151936, 256000), more=True),
        slider("tokens_s", "Steps a second on a replica", 100, 10, 200, step=10, more=True),
        powers_of_two("replicas", "GPUs in the fleet", 1000, 1, 4096, more=True),
        select("machine_name", "GPU", "H200", list(MACHINES), more=True),
    ),
    presets={
        "A chain of 13 launches": {},
        "One request": {"batch": 1},
        "Captured graph": {"graph": True},
        "Penalties, grammar": {"penalties": True},
        "Top-p alone": {"top_k": False, "min_p": False},
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
