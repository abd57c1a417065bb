"""Show experts on devices, where a step lasts as long as the device with the most tokens."""

from kernels.machines import MACHINES
from widgets import units
from widgets.charts import Box, Scale, axis_y, linear, spread
from widgets.controls import powers_of_two, select, slider, steps
from widgets.declare import Declaration, Prediction
from widgets.expert_load_balance.device_load_model import MOST_SKEW, Result, run
from widgets.scene import WIDE, Column, Scene, about, drag, figure, handle, line, rect, table, text

HOT = slider(
    "hot_share",
    "Tokens that pick the hot expert",
    0.6,
    0.0,
    1.0,
    step=0.05,
    more=True,
    help="A share of all tokens.",
)
SKEW = slider("skew", "Skew of the long tail", 1.0, 0.0, MOST_SKEW, step=0.1, more=True)
# (tokens of each expert, time of each device, height)
PLACES = {
    True: (Box(60, 40, 522, 82), Box(60, 182, 522, 186), 404),
    False: (Box(54, 56, 280, 90), Box(58, 216, 144, 200), 456),
}
PATTERNS = {"hot": "one hot expert", "tail": "a long tail", "even": "even"}
PLACEMENTS = {"number": "by number", "dealt": "dealt round", "load": "by load"}
LINKED = [name for name, one in MACHINES.items() if one.link_bandwidth]


def _top(value: float) -> float:
    """Return the end of an axis that holds the value: 1, 1.2, 1.4, 1.6, 1.8, ... times a power of ten, four even parts."""
    power = 10.0 ** (len(str(int(value))) - 1)
    return next(
        step * power for step in (1, 1.2, 1.4, 1.6, 1.8, 2, 2.4, 3, 4, 5, 6, 8, 10) if step * power >= value
    )


def _is_hot(r: Result, e: int) -> bool:
    return r.experts[e].routed > 1.5 * r.even_tokens


def _experts(r: Result, at: Box) -> list[dict]:
    """Draw the cause, which is the tokens of each expert and those that a limit turns away."""
    y = linear(0, r.most_routed if r.most_routed == r.tokens else _top(r.most_routed), at.bottom, at.y)
    pitch = at.w / len(r.experts)
    wide, every = min(44, 0.76 * pitch), next(n for n in (1, 2, 4, 8, 16) if n * pitch >= 30)
    marks = axis_y("loads", y, at.x, right=at.right, ticks=[0, y.hi / 2, y.hi], show=units.count)
    marks.append(text("loads-title", 0, 16, "tokens of each expert", bold=True))
    for e, expert in enumerate(r.experts):
        x, role = at.x + (e + 0.5) * pitch - wide / 2, "hot" if _is_hot(r, e) else "primary"
        copies = f" ×{len(expert.devices)}" if len(expert.devices) > 1 else ""
        top, full = y(expert.kept), y(expert.routed)
        tip = f"Expert {e}: {units.count(expert.kept)} tokens, on {units.counted(len(expert.devices), 'device')}"
        bar = rect(f"load-{e}", x, top, wide, at.bottom - top, role, tip)
        marks += about("busiest", bar) if _is_hot(r, e) else [bar]
        for part in range(1, len(expert.devices)):  # copies share the tokens evenly
            level = at.bottom - (at.bottom - top) * part / len(expert.devices)
            marks.append(line(f"load-{e}-copy{part}", x, level, x + wide, level, "inverse"))
        if expert.dropped:
            tip = f"Expert {e}: {units.count(expert.dropped)} tokens dropped"
            marks.append(rect(f"lost-{e}", x, full, wide, top - full, "dropped", tip))
        if e % every == 0:
            name = f"E{e}{copies}" if pitch >= 44 else f"E{e}"
            marks.append(
                text(f"load-{e}-name", x + wide / 2, at.bottom + 16, name, "muted", "small", "middle")
            )
    if r.capacity_tokens:
        level, words = y(r.capacity_tokens), f"limit: {units.count(r.capacity_tokens)}"
        marks.append(line("capacity", at.x, level, at.right, level, "limit", words))
        lost = f"{units.count(r.dropped)} dropped"
        if at.w > 400:
            marks.append(text("capacity-name", at.right + 8, level + 4, words, "muted", "small"))
            marks.append(text("lost", at.right + 8, level - 12, lost, "dropped", "small"))
        else:
            marks.append(text("capacity-name", at.right, 34, f"{words}, {lost}", "dropped", "small", "end"))
    return marks + _pulled(r, at, y, at.x + 0.5 * pitch)


def _pulled(r: Result, at: Box, y: Scale, x: float) -> list[dict]:
    """Return the hot expert's bar, or the first of a long tail, whose height is pulled."""
    if r.pattern == "hot":

        def top(share: float) -> float:  # never down on the expert's name
            return min(y(share * r.tokens), at.bottom - 10)

        held = text(
            "hot-tokens",
            x + 19,
            top(r.hot_share) + 4,
            units.count(r.experts[0].routed),
            "hot",
            "small",
            bold=True,
            on="ground",
        )
        return [held, handle("pull-hot", x, top(r.hot_share), "hot", drag(HOT, "y", top))]
    if r.pattern == "tail":
        pairs, many = sum(e.routed for e in r.experts), len(r.experts)

        def place(skew: float) -> float:
            return y(pairs / sum(rank**-skew for rank in range(1, many + 1)))

        return [handle("pull-skew", x, place(r.skew), "hot", drag(SKEW, "y", place))]
    return []


def _column(r: Result, d: int, x: float, wide: float, y: Scale) -> list[dict]:
    """Draw one device's time, with its rows' travel, the wait for the busiest link, its experts, and the last wait."""
    device, done, marks = r.devices[d], r.exchange_s, []
    own = device.travel_s
    tip = f"Device {d}: its rows travel for {units.seconds(own)}"
    marks += about("links", rect(f"exchange-{d}", x, y(own), wide, y(0) - y(own), "network", tip))
    if done > own * (1 + 1e-9):
        tip = f"Device {d}: waits {units.seconds(done - own)} until the busiest receiver has all"
        marks.append(rect(f"link-idle-{d}", x, y(done), wide, max(0, y(own) - y(done) - 1), "waste", tip))
    for e, tokens in sorted(device.held, key=lambda one: (not _is_hot(r, one[0]), one[0])):
        high = y(done) - y(done + tokens * r.token_s)
        done += tokens * r.token_s
        role = "hot" if _is_hot(r, e) else "primary"
        tip = f"Device {d}: expert {e}, {units.count(tokens)} tokens, {units.seconds(tokens * r.token_s)}"
        marks.append(rect(f"on-{d}-{e}", x, y(done) + 1, wide, max(0, high - 1), role, tip))
        if high >= 18 and wide >= 34:
            marks.append(
                text(
                    f"on-{d}-{e}-name",
                    x + wide / 2,
                    y(done) + high / 2 + 4,
                    f"E{e}",
                    "inverse",
                    "small",
                    "middle",
                )
            )
    if device.idle_s > 0:
        tip = f"Device {d}: waits {units.seconds(device.idle_s)}"
        marks.append(rect(f"idle-{d}", x, y(r.step_s), wide, y(done) - y(r.step_s) - 1, "idle", tip))
        if y(done) - y(r.step_s) >= 20 and wide >= 40:
            middle = (y(done) + y(r.step_s)) / 2 + 4
            marks.append(
                text(f"idle-{d}-name", x + wide / 2, middle, "waits", "muted", "small", "middle", on="idle")
            )
    return marks


def _devices(r: Result, at: Box) -> list[dict]:
    """Draw the effect, which is each device's time and the moment when all are done."""
    micro = 1e-6 * _top(r.longest_step_s * 1e6)
    y = linear(0, micro, at.bottom, at.y)
    pitch = at.w / len(r.devices)
    wide = min(60, 0.82 * pitch)
    quarters = [micro * q / 4 for q in range(5)]
    marks = axis_y("times", y, at.x, right=at.right, ticks=quarters, show=units.seconds)
    marks.append(text("times-title", 0, at.y - 20, "time of each device", bold=True))
    named = [("step", r.step_s, f"done: {units.seconds(r.step_s)}", "hot")]
    if r.slowdown > 1.005:
        named.append(("even", r.balanced_step_s, f"if even: {units.seconds(r.balanced_step_s)}", "useful"))
    for (id, value, words, role), level in zip(named, spread([y(v) for _, v, _, _ in named]), strict=True):
        marks.append(line(f"{id}-line", at.x, y(value), at.right + 4, y(value), "limit", words))
        said = words if at.w > 400 else words.replace("if even: ", "even ").replace(": ", " ")
        marks.append(
            text(
                f"{id}-name",
                at.right + 8,
                level + 4,
                said,
                role,
                "body" if at.w > 400 else "small",
                bold=True,
            )
        )
    marks += _waiting(r, at, y(r.step_s))
    if pitch > 40:
        marks.append(text("tokens-of", at.x - 8, at.bottom + 32, "tokens", "muted", "small", "end"))
    for d, device in enumerate(r.devices):
        x = at.x + (d + 0.5) * pitch - wide / 2
        marks += _column(r, d, x, wide, y)
        busiest = d == r.busiest and r.slowdown > 1.005
        tone = ("hot" if busiest else "muted", "small", "middle", busiest)
        if pitch > 15 or d % 2 == 0:
            name = f"GPU {d}" if pitch > 50 else f"{d}"
            marks.append(text(f"device-{d}", x + wide / 2, at.bottom + 16, name, *tone))
        if pitch > 40:
            held = units.count(device.tokens)
            marks.append(text(f"tokens-{d}", x + wide / 2, at.bottom + 32, held, *tone))
    return marks


def _waiting(r: Result, at: Box, top: float) -> list[dict]:
    """Write the answer over the columns, where they leave room."""
    if top < at.y + 58 or r.slowdown <= 1.005:
        return []
    size, words = ("huge", "of the experts' time is waiting") if at.w > 400 else ("big", "waiting")
    share = units.percent(r.idle_share, 0)
    return [
        text("waiting", at.right - 6, at.y + 30, share, "hot", size, "end", True, "ground"),
        text("waiting-name", at.right - 6, at.y + 47, words, "hot", "small", "end", True, "ground"),
    ]


def _takeaway(r: Result) -> str:
    if r.dropped:
        return "A capacity limit shortens the step by dropping tokens, so the answer changes too."
    if r.slowdown < 1.005:
        return "With even loads every device is done at the same time, so none waits."
    if max(len(e.devices) for e in r.experts) > 1:
        return f"Copies of the hottest experts share their tokens. The step takes {units.times(r.slowdown)} an even one."
    if r.slowdown < 1.1:
        return f"Loads are nearly even, so the step lasts only {units.percent(r.slowdown - 1)} longer than an even one."
    if r.pattern == "tail" and r.placement == "number" and len(r.experts) > len(r.devices):
        return "The popular experts share a GPU here, so all other GPUs wait for this GPU."
    if r.pattern == "tail" and r.placement == "load" and max(e.kept for e in r.experts) > r.mean_tokens:
        return "The most popular expert alone is more than a GPU's share, so placing can't help further."
    return "The work is the same, but every GPU waits for the busiest one."


def _warning(r: Result) -> str:
    mean = sum(e.kept for e in r.experts) / len(r.experts)
    if mean >= r.ridge_tokens:
        return ""
    return (
        f"An expert has {units.number(mean)} tokens on average. Below {units.number(r.ridge_tokens)}, reading its "
        "weights takes longer than multiplying by them, so real times are longer than these."
    )


def _table(r: Result):
    columns = (
        "device",
        Column("tokens", show=units.count),
        Column("with the experts", "s", units.seconds),
        Column("waiting", "s", units.seconds),
        "experts held",
    )
    rows = [
        (f"GPU {d}", one.tokens, one.experts_s, one.idle_s, ", ".join(f"E{e}" for e, _ in one.held))
        for d, one in enumerate(r.devices)
    ]
    return table(columns, rows)


def scene(r: Result, measured: dict | None = None, width: int = WIDE) -> Scene:
    loads_at, times_at, height = PLACES[width == WIDE]
    step = figure("for the step", r.step_s, units.seconds, "hot", "busiest")
    even = figure(
        "with even loads of what is kept" if r.dropped else "with even loads",
        r.balanced_step_s,
        units.seconds,
        "useful",
    )
    slow = figure("as long as an even step", r.slowdown, units.times)
    idle = figure("of the experts' time is waiting", r.idle_share, units.percent)
    lost = f" {units.count(r.dropped)} token-expert pairs are dropped." if r.dropped else ""
    most = units.count(r.busiest_tokens)
    return Scene(
        summary=f"With {len(r.experts)} experts on {len(r.devices)} GPUs the step lasts {step.text}, {slow.text} as long "
        f"as the {even.text} of an even load, and {idle.text} of the time with the experts is waiting.{lost}",
        takeaway=_takeaway(r),
        marks=_experts(r, loads_at) + _devices(r, times_at),
        figures=(step, even, slow, idle),
        table=_table(r),
        height=height,
        width=width,
        formula=(
            (
                "step = {links} + {busiest} · time of a token",
                f"{{links:{units.seconds(r.exchange_s)}}} + {{busiest:{most}}} · {units.seconds(r.token_s)} = {step.text}",
            ),
        ),
        warning=_warning(r),
        legend=(
            ("hot", "hot experts"),
            ("primary", "other experts"),
            ("network", "rows travel"),
            ("waste", "waits for the last rows"),
            ("idle", "waits for the busiest's experts"),
            *((("dropped", "dropped by the limit"),) * bool(r.capacity_tokens)),
        ),
    )


SIMULATOR = Declaration(
    title="Expert load over devices",
    question="Why does one hot expert slow every GPU down?",
    controls=(
        select("pattern", "The router's choice", "hot", PATTERNS),
        select("placement", "Where experts live", "number", PLACEMENTS),
        slider(
            "copies",
            "Extra copies of the hottest",
            0,
            0,
            16,
            help="Placed by load, whatever is chosen above.",
        ),
        steps(
            "capacity",
            "Limit of an expert",
            0,
            (0, 1, 1.25, 1.5, 2, 4),
            lambda f: f"{units.number(f)}× even" if f else "none",
            help="In even shares. Tokens beyond it are dropped.",
        ),
        HOT,
        SKEW,
        powers_of_two("devices", "GPUs", 8, 2, 16, more=True),
        powers_of_two("experts", "Experts", 16, 8, 64, more=True),
        powers_of_two("top_k", "Experts a token picks (top-k)", 2, 1, 8, more=True),
        powers_of_two("tokens", "Tokens on all GPUs", 8192, 1024, 65536, more=True),
        select("machine_name", "GPU", "H200", LINKED, more=True),
    ),
    presets={
        "One hot expert": {},
        "With 6 copies": {"copies": 6},
        "With a capacity limit": {"capacity": 1.25},
        "A long tail, by number": {"pattern": "tail"},
        "A long tail, by load": {"pattern": "tail", "placement": "load"},
    },
    run=run,
    scene=scene,
    prediction=Prediction(
        "16 experts live on 8 GPUs, two on each. Every token goes to two experts. For 60% of the tokens one of the two is "
        "the same expert, and all other choices spread evenly. How many times longer is the step than with an even load?",
        "slowdown",
        "times",
        0.15,
    ),
    source="GEMM & MoE kernels; Beyond attention",
)
