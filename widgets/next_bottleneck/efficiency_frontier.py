"""Two ways to serve one model, and yours: latency, cost, throughput, quality and memory pull against each other."""

from dataclasses import dataclass

from kernels.machines import machine
from kernels.next_bottleneck import cost
from widgets import units
from widgets.charts import Box, axis_x, axis_y, log, text_width
from widgets.controls import log_slider, powers_of_two, select, slider
from widgets.declare import Declaration, Prediction
from widgets.scene import (
    WIDE,
    Column,
    Scene,
    about,
    circle,
    drag,
    figure,
    handle,
    line,
    path,
    rect,
    table,
    text,
)

GPU, PARAMETERS = "H100", 70e9
CHAT_S = 0.050  # between tokens
WANTS = {
    "chatbot": "Chatbot: a token every 50 ms or sooner",
    "batch": "Batch of documents: the cheapest token",
    "medical": "Medical advice: 16-bit weights only",
}
USERS = log_slider("users", "Users at once", 8, 1, 256, per_decade=8)
BETWEEN = log_slider("between_ms", "Time between tokens", 30.0, 2.0, 500.0, unit="ms")
# (the plot, the five dimensions' left edge, right edges of their columns and first row, height)
PLACES = {
    True: (Box(58, 40, 340, 300), 430, (574, 648, WIDE), 96, 390),
    False: (Box(50, 40, 264, 250), 0, (164, 250, 340), 416, 632),
}
PITCH = 42


@dataclass(frozen=True)
class Point:
    name: str
    gpus: int
    users: int
    bits: int
    between_tokens_s: float
    tokens_s: float
    usd_per_1k: float
    weight_bytes: float  # on one GPU
    meets: bool  # what the application asks for
    on_frontier: bool


@dataclass(frozen=True)
class Result:
    application: str
    usd_per_gpu_hour: float
    a: Point
    b: Point
    yours: Point
    best: str
    best_usd_per_1k: float
    reported_a_usd: float
    reported_b_usd: float
    reported_cost_ratio: float
    latency_ratio: float
    cost_ratio: float  # by the users, the latency and the price of the GPUs
    reported_b_tokens_s: float
    floor_s: float  # nobody reads your weights faster


def run(users, between_ms, gpus, bits, application, usd_per_gpu_hour):
    memory = machine(GPU).memory_bytes
    if PARAMETERS * bits / 8 / gpus > memory:
        raise ValueError(
            f"GPUs must be enough for {bits}-bit weights of {units.si_bytes(PARAMETERS * bits / 8)}, got {gpus}; "
            "take more GPUs or fewer bits"
        )
    mine = cost.Configuration("yours", gpus, users, between_ms / 1e3, f"int{bits}", False, 0, 0)
    given = [(cost.LATENCY, 16), (cost.THROUGHPUT, 4), (mine, bits)]
    prices = [cost.usd_per_1k_tokens(c.gpus, usd_per_gpu_hour, c.tokens_s) for c, _ in given]
    goals = {"latency": "less", "cost": "less"}
    spots = [{"latency": c.between_tokens_s, "cost": usd} for (c, _), usd in zip(given, prices, strict=True)]
    best_of = cost.frontier(spots, goals)

    def meets(c: cost.Configuration, width: int) -> bool:
        return {"chatbot": c.between_tokens_s <= CHAT_S, "batch": True, "medical": width >= 16}[application]

    a, b, yours = (
        Point(c.name, c.gpus, c.users, width, c.between_tokens_s, c.tokens_s, usd, PARAMETERS * width / 8 / c.gpus,
              meets(c, width), i in best_of)
        for i, ((c, width), usd) in enumerate(zip(given, prices, strict=True))
    )  # fmt: skip
    best = min((p for p in (a, b, yours) if p.meets), key=lambda p: p.usd_per_1k)
    return Result(
        application, usd_per_gpu_hour, a, b, yours, best.name, best.usd_per_1k,
        cost.LATENCY.reported_usd_per_1k, cost.THROUGHPUT.reported_usd_per_1k,
        cost.LATENCY.reported_usd_per_1k / cost.THROUGHPUT.reported_usd_per_1k,
        b.between_tokens_s / a.between_tokens_s, a.usd_per_1k / b.usd_per_1k, cost.THROUGHPUT.reported_tokens_s,
        yours.weight_bytes / machine(GPU).bandwidth,
    )  # fmt: skip


def _usd(value: float) -> str:
    return f"${units.number(value, 2)}"


def _known(r: Result) -> tuple[tuple[str, str, Point, str], ...]:
    return (("a", "A", r.a, "primary"), ("b", "B", r.b, "secondary"), ("yours", "yours", r.yours, "now"))


def _plot(r: Result, at: Box) -> list[dict]:
    """Down and left is better; nothing on the line is better in both. Your point is pulled."""
    x, y = log(0.002, 0.5, at.x, at.right), log(0.0001, 2.0, at.bottom, at.y)
    marks = [text("plot-title", 0, 14, "Cost against latency: down and left is better", bold=True)]
    marks += axis_y("cost", y, at.x, "$ for 1,000 tokens", lambda v: f"${units.number(v)}", right=at.right,
                    ticks=(0.001, 0.01, 0.1, 1))  # fmt: skip
    marks += axis_x(
        "latency", x, at.bottom, "between two tokens", units.seconds, ticks=(0.005, 0.02, 0.1, 0.5)
    )
    floor = x(r.floor_s)
    tip = f"nobody reads {units.si_bytes(r.yours.weight_bytes)} of weights in less than {units.seconds(r.floor_s)}"
    marks += about("floor", rect("too-fast", at.x, at.y, max(0, floor - at.x), at.h, "waste", tip),
                   line("floor", floor, at.bottom, floor, at.y, "limit", tip))  # fmt: skip
    upright = [floor]
    if r.application == "chatbot":
        late = x(CHAT_S)
        upright.append(late)
        marks += [
            rect(
                "too-late", late, at.y, at.right - late, at.h, "idle", "too late for a chatbot: above 50 ms"
            ),
            line("limit", late, at.bottom, late, at.y, "limit", "a chatbot's limit: 50 ms"),
            text("limit-name", late + 6, at.y + 14, "too late to chat", "muted", "small", on="idle"),
        ]
    best = sorted((p for _, _, p, _ in _known(r) if p.on_frontier), key=lambda p: p.between_tokens_s)
    marks.append(path("frontier", [(x(p.between_tokens_s), y(p.usd_per_1k)) for p in best], "axis"))
    bx, by = x(r.b.between_tokens_s), y(r.reported_b_usd)
    marks += [
        line("b-claim", bx, y(r.b.usd_per_1k), bx, by, "limit"),
        circle("b-reported", bx, by, 4, "idle", f"B as reported: {_usd(r.reported_b_usd)} for 1,000 tokens"),
    ]
    labels = []
    for id, name, p, role in _known(r):
        px, py = x(p.between_tokens_s), y(p.usd_per_1k)
        tip = f"{name}: {units.seconds(p.between_tokens_s)} between tokens, {_usd(p.usd_per_1k)} for 1,000"
        if id != "yours":
            marks.append(circle(f"{id}-dot", px, py, 7, role, tip))
        labels.append((id, name, px, py, role))
    spent = r.yours.usd_per_1k * r.yours.users  # at this latency a token's cost is this over the users
    mine = handle("yours-dot", *labels[2][2:4], "now", drag(BETWEEN, "x", lambda ms: x(ms / 1e3)),
                  drag(USERS, "y", lambda users: y(spent / users)), tip=tip)  # fmt: skip
    return marks + _labels([*labels, ("b-reported", "B, reported", bx, by, "muted")], upright, at) + [mine]


def _labels(wanted: list[tuple[str, str, float, float, str]], upright: list[float], at: Box) -> list[dict]:
    """Each name beside its dot, on the first side clear of all dots, of upright lines and of the names so far."""
    taken = [
        (x - 16, y - 16, x + 16, y + 16) if role == "now" else (x - 8, y - 8, x + 8, y + 8)
        for _, _, x, y, role in wanted
    ]
    taken += [(x - 2, at.y, x + 2, at.bottom) for x in upright]
    marks = []
    for id, name, x, y, role in wanted:
        wide, found = text_width(name, "small", role != "muted"), None
        for left, base in ((x + 18, y - 8), (x - 18 - wide, y - 8), (x + 18, y + 17), (x - 18 - wide, y + 17),
                           (x - wide / 2, y - 24), (x - wide / 2, y + 32)):  # fmt: skip
            box = (left, base - 10, left + wide, base + 4)
            inside = at.x < box[0] and at.y + 18 < box[1] and box[2] < at.right - 2 and box[3] < at.bottom
            clear = all(box[2] < t[0] or t[2] < box[0] or box[3] < t[1] or t[3] < box[1] for t in taken)
            if found is None and inside and clear:
                found = (left, base, box)
        if found:
            taken.append(found[2])
            marks.append(text(f"{id}-name", found[0], found[1], name, role, "small", bold=role != "muted"))
    return marks


def _dimensions(r: Result, left: float, columns: tuple, top: float) -> list[dict]:
    """Who each point serves, then the five dimensions in figures, the better one of each in bold."""
    marks = [text("dims-title", left, top - 56, "Five dimensions", bold=True)]
    marks.append(text("head-serves", left, top - 14, "users / GPUs", "muted", "small"))
    points = _known(r)
    for (id, name, p, role), x in zip(points, columns, strict=True):
        marks.append(text(f"head-{id}", x, top - 30, name, role, "body", "end", bold=True))
        marks.append(text(f"head-{id}-serves", x, top - 14, f"{p.users} / {p.gpus}", "ink", "small", "end"))
    rows = (
        (
            "throughput",
            [p.tokens_s for _, _, p, _ in points],
            lambda v: f"{units.number(v)}/s",
            max,
            "tokens",
        ),
        ("latency", [p.between_tokens_s for _, _, p, _ in points], units.seconds, min, "between tokens"),
        ("cost", [p.usd_per_1k for _, _, p, _ in points], _usd, min, "1,000 tokens"),
        ("quality", [p.bits for _, _, p, _ in points], lambda v: f"{v} bits", max, "of a weight"),
        ("memory", [p.weight_bytes for _, _, p, _ in points], units.si_bytes, min, "weights a GPU"),
    )
    for k, (name, values, show, better, detail) in enumerate(rows):
        y = top + k * PITCH
        marks += [
            line(f"rule{k}", left, y - 6, columns[-1], y - 6, "grid"),
            text(f"dim{k}", left, y + 12, name),
            text(f"dim{k}-detail", left, y + 27, detail, "muted", "small"),
        ]
        for (id, _, _, _), x, value in zip(points, columns, values, strict=True):
            best = value == better(values)
            marks.append(
                text(
                    f"dim{k}-{id}",
                    x,
                    y + 14,
                    show(value),
                    "useful" if best else "ink",
                    anchor="end",
                    bold=best,
                )
            )
    return marks


def _warning(r: Result) -> str:
    if r.yours.between_tokens_s < r.floor_s:
        return (
            f"No {r.yours.gpus} {GPU} do that: reading {units.si_bytes(r.yours.weight_bytes)} of weights each takes "
            f"{units.seconds(r.floor_s)}, longer than {units.seconds(r.yours.between_tokens_s)}."
        )
    if not r.yours.meets:
        why = "it is too late" if r.application == "chatbot" else "its weights are too narrow"
        return f"Yours does not serve this application: {why}."
    return ""


def _takeaway(r: Result) -> str:
    who = r.best.split(":")[0]
    if not r.yours.on_frontier:
        return "Yours is beaten in latency and in cost at once: it is not on the frontier."
    return f"No point is best in all five: for this application {who} is, and for another one it is not."


def _table(r: Result):
    columns = ("configuration", "GPUs", "users", Column("between tokens", "s", units.seconds),
               Column("tokens a second"), Column("1,000 tokens", "$", _usd), Column("weights", "bits"),
               Column("weights a GPU", "B", units.si_bytes))  # fmt: skip
    return table(columns, [
        (p.name, p.gpus, p.users, p.between_tokens_s, p.tokens_s, p.usd_per_1k, p.bits, p.weight_bytes)
        for p in (r.a, r.b, r.yours)
    ])  # fmt: skip


def scene(r: Result, measured: dict | None = None, width: int = WIDE) -> Scene:
    plot_at, left, columns, top, height = PLACES[width == WIDE]
    rate = figure("your tokens a second", r.yours.tokens_s, role="now")
    price = figure("your 1,000 tokens", r.yours.usd_per_1k, _usd, "now")
    cheaper = figure("cost of a token, A over B", r.cost_ratio, units.times)
    later = figure("wait for a token, B over A", r.latency_ratio, units.times)
    return Scene(
        summary=f"Yours makes {rate.text} tokens a second at {price.text} for 1,000; a token of A costs {cheaper.text} one "
        f"of B, and B's users wait {later.text} as long as A's.",
        takeaway=_takeaway(r),
        marks=_plot(r, plot_at) + _dimensions(r, left, columns, top),
        figures=(rate, price, cheaper, later),
        table=_table(r),
        height=height,
        width=width,
        formula=(
            ("tokens a second = {users} / {between_ms:time between tokens}",
             f"{{users:{r.yours.users}}} / {{between_ms:{units.seconds(r.yours.between_tokens_s)}}} = {rate.text}"),
            ("1,000 tokens = {gpus:GPUs} · {usd_per_gpu_hour:$ an hour} / 3600 / tokens a second · 1000",
             f"{{gpus:{r.yours.gpus}}} · {{usd_per_gpu_hour:${units.number(r.usd_per_gpu_hour)}}} / 3600 / {rate.text} · 1000 = {price.text}"),
            ("{floor} = weights a GPU / its bandwidth",
             f"{units.si_bytes(r.yours.weight_bytes)} / {units.si_bytes(machine(GPU).bandwidth)}/s = {{floor:{units.seconds(r.floor_s)}}}"),
            ("B as reported: 4,000 tokens a second on each GPU",
             f"64 users / 120 ms are {units.number(r.b.tokens_s)} on all four"),
        ),
        warning=_warning(r),
    )  # fmt: skip


SIMULATOR = Declaration(
    title="Efficiency frontier",
    question="Fast for one user or cheap for many: where should you stand?",
    controls=(
        USERS,
        BETWEEN,
        powers_of_two("gpus", "GPUs", 4, 1, 16),
        select("application", "Application", "chatbot", WANTS),
        select("bits", "Bits of a weight", 4, {4: "4", 8: "8", 16: "16"}, more=True),
        slider("usd_per_gpu_hour", "Price of a GPU hour", 2.7, 0.5, 10.0, step=0.1, unit="$", more=True,
               help="2.70 is what A's $0.12 comes from."),
    ),
    presets={
        "A chatbot for eight": {},
        "Documents overnight": {"application": "batch", "users": 128, "between_ms": 200.0},
        "Quality first": {"application": "medical", "bits": 16, "users": 4, "between_ms": 30.0},
        "Beaten twice": {"users": 2, "between_ms": 150.0},
    },
    run=run,
    scene=scene,
    prediction=Prediction(
        "A serves one user on 8 GPUs with a token every 20 ms; B serves 64 users on 4 GPUs with a token every 120 ms. "
        "How many times more does a token of A cost?",
        "cost_ratio",
        "times more",
        0.2,
    ),
    source="Performance Engineering",
)  # fmt: skip
