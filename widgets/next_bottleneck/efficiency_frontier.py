"""Compare two ways to serve one model, and yours, where latency, cost, throughput, quality and memory pull against
each other."""

import math
from dataclasses import dataclass

from kernels.machines import machine
from kernels.next_bottleneck import cost
from widgets import units
from widgets.charts import Box, Scale, axis_x, axis_y, log, text_width
from widgets.controls import log_slider, powers_of_two, select, slider, steps
from widgets.declare import Declaration, Prediction
from widgets.scene import (
    WIDE,
    Column,
    Scene,
    about,
    circle,
    drag,
    extent,
    figure,
    handle,
    line,
    path,
    table,
    text,
)

GPU, MODEL = "H100", cost.LLAMA_70B
CONTEXT = 2048  # tokens of each user so far
LATE = steps(
    "late_ms", "A chat waits at most", 50, (3, 4, 5, 6, 8, 10, 15, 20, 30, 50, 100, 200), unit="ms", more=True,
    help="Between two tokens, if the application is a chat.",
)  # fmt: skip
WANTS = {"chatbot": "Chat: in time", "batch": "Documents: cheapest", "medical": "Medical: 16 bits only"}
USERS = log_slider("users", "Users at once", 8, 1, 256, per_decade=8)
REACHED = log_slider(
    "reached",
    "Share of the roof reached",
    10,
    4,
    100,
    unit="%",
    help="100%: all at the GPU's peak. A reaches 26%, B 5%.",
)
# (the plot, height)
PLACES = {True: (Box(52, 40, 640, 296), 384), False: (Box(50, 40, 284, 300), 388)}
FIVE = {"throughput": "more", "latency": "less", "cost": "less", "quality": "more", "memory": "less"}


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
    roof_share: float  # of the least time between tokens that this number of users can have on its GPUs
    meets: bool  # what the application asks for
    beaten: bool  # another point has less latency and less cost

    @property
    def dimensions(self) -> dict[str, float]:
        return {
            "throughput": self.tokens_s,
            "latency": self.between_tokens_s,
            "cost": self.usd_per_1k,
            "quality": self.bits,
            "memory": self.weight_bytes,
        }


@dataclass(frozen=True)
class Edge:
    """Hold the limit that no software gets past, your GPUs and weights at the peak, with this many users."""

    users: int
    between_tokens_s: float
    usd_per_1k: float


@dataclass(frozen=True)
class Result:
    application: str
    late_s: float  # between tokens, for a chat
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
    weights_s: float  # of the least time, for reading the weights or multiplying them
    caches_s: float  # and reading what your users have said
    floor_s: float
    sharing_users: float  # up to this number share the weights' reading for free
    most_users: int  # whose caches fit
    edge: tuple[Edge, ...]
    knee: Edge  # the application's cheapest point on the edge, with the fewest users that reach this point
    b_made_perfect: bool  # yours has B's users, GPUs and bits, all at the peak
    best_in_all: str  # the point that is nowhere worse than the others, if there is one


def _fastest(users: int, gpus: int, bits: int) -> cost.Fastest:
    return cost.fastest(MODEL, machine(GPU), users=users, gpus=gpus, weight_bits=bits, context=CONTEXT)


def run(users, reached, gpus, bits, application, usd_per_gpu_hour, late_ms):
    memory = machine(GPU).memory_bytes
    weights = MODEL.parameters * bits / 8
    most = cost.most_users(MODEL, machine(GPU), gpus=gpus, weight_bits=bits, context=CONTEXT)
    if not most:
        raise ValueError(
            f"GPUs must be enough for {bits}-bit weights of {units.si_bytes(weights)}, got {gpus}; "
            "take more GPUs or fewer bits"
        )
    if users > most:
        raise ValueError(
            f"Users at once must be at most {most}, whose {CONTEXT:,} tokens each fit beside the weights into "
            f"{units.si_bytes(gpus * memory)}, got {users}; take fewer users or more GPUs"
        )
    floor = _fastest(users, gpus, bits)
    mine = cost.Configuration(
        "yours", gpus, users, floor.between_tokens_s / (reached / 100), f"int{bits}", False, 0, 0
    )
    given = [(cost.LATENCY, 16), (cost.THROUGHPUT, 4), (mine, bits)]
    prices = [cost.usd_per_1k_tokens(c.gpus, usd_per_gpu_hour, c.tokens_s) for c, _ in given]
    spots = [{"latency": c.between_tokens_s, "cost": usd} for (c, _), usd in zip(given, prices, strict=True)]
    unbeaten = cost.frontier(spots, {"latency": "less", "cost": "less"})

    def meets(c: cost.Configuration, width: int) -> bool:
        return {
            "chatbot": c.between_tokens_s <= late_ms / 1e3 * (1 + 1e-9),
            "batch": True,
            "medical": width >= 16,
        }[application]

    a, b, yours = (
        Point(c.name, c.gpus, c.users, width, c.between_tokens_s, c.tokens_s, usd, MODEL.parameters * width / 8 / c.gpus,
              _fastest(c.users, c.gpus, width).between_tokens_s / c.between_tokens_s, meets(c, width), i not in unbeaten)
        for i, ((c, width), usd) in enumerate(zip(given, prices, strict=True))
    )  # fmt: skip
    points = (a, b, yours)
    best = min((p for p in points if p.meets), key=lambda p: p.usd_per_1k, default=None)
    left = cost.frontier([p.dimensions for p in points], FIVE)
    edge, sharing = [], cost.free_tokens(machine(GPU).rate("fp16"), machine(GPU).bandwidth, bits / 8)
    halts = (*USERS.values(), math.ceil(sharing), 350, 500, 700, 1000, 1400)
    for n in sorted({*(n for n in halts if n < most), most}):
        least = _fastest(n, gpus, bits).between_tokens_s
        edge.append(Edge(n, least, cost.usd_per_1k_tokens(gpus, usd_per_gpu_hour, n / least)))
    late_s = late_ms / 1e3 if application == "chatbot" else math.inf
    wanted = [one for one in edge if one.between_tokens_s <= late_s] or edge[:1]
    cheapest = min(one.usd_per_1k for one in wanted)
    knee = next(one for one in wanted if one.usd_per_1k <= cheapest * (1 + 1e-9))
    perfect = (users, gpus, bits) == (b.users, b.gpus, b.bits) and reached == 100
    return Result(
        application, late_ms / 1e3, usd_per_gpu_hour, a, b, yours, best.name if best else "", best.usd_per_1k if best else 0,
        cost.LATENCY.reported_usd_per_1k, cost.THROUGHPUT.reported_usd_per_1k,
        cost.LATENCY.reported_usd_per_1k / cost.THROUGHPUT.reported_usd_per_1k,
        b.between_tokens_s / a.between_tokens_s, a.usd_per_1k / b.usd_per_1k, cost.THROUGHPUT.reported_tokens_s,
        floor.weights_s, floor.caches_s, floor.between_tokens_s,
        sharing, most, tuple(edge), knee, perfect,
        points[left[0]].name if len(left) == 1 else "",
    )  # fmt: skip


def _usd(value: float) -> str:
    return f"${units.number(value, 2)}"


def _known(r: Result) -> tuple[tuple[str, str, Point, str], ...]:
    return (("a", "A", r.a, "primary"), ("b", "B", r.b, "secondary"), ("yours", "yours", r.yours, "now"))


def _count(n: int, one: str) -> str:
    return f"{n} {one}" if n == 1 else f"{n} {one}s"


@dataclass(frozen=True)
class Frontier:
    """Hold where the edge of the reachable region runs in the picture."""

    edge: list[tuple[float, float]]
    full: list[tuple[float, float]]  # with the most users, on to the plot's right side
    inside: bool  # its name is left of its line, on the unreachable side

    @property
    def name_x(self) -> float:
        return self.edge[0][0] + (-6 if self.inside else 6)

    def line(self, at: Box) -> list[tuple[float, float]]:
        return [(self.edge[0][0], at.y), *self.edge]

    def foot(self, px: float) -> float:
        """Return the height of the frontier at this x, or of its first point."""
        both = [*self.edge, self.full[1]]
        pairs = zip(both, both[1:], strict=False)
        return next((edge_at([a, b], px) for a, b in pairs if a[0] <= px <= b[0]), both[0][1])

    def late(self, at: Box, px: float) -> list[tuple[float, float]]:
        """Return the outline of all that can be reached to the right of this x."""
        px = max(px, self.edge[0][0])
        low = [(px, self.foot(px)), *(one for one in [*self.edge, self.full[1]] if one[0] > px)]
        return [(px, at.y), *low, (at.right, at.y)]

    def ground(self, px: float, py: float) -> str:
        """Return the fill under a text at this position."""
        n = next((i for i, (_, ey) in enumerate(self.edge) if ey > py), None)
        left = self.edge[0][0] if n == 0 else self.edge[-1][0] if n is None else self.edge[n - 1][0]
        return "idle" if px < left or py > edge_at(self.full, px) else ""


def _frontier(r: Result, at: Box, x: Scale, y: Scale) -> Frontier:
    edge, last = [(x(one.between_tokens_s), y(one.usd_per_1k)) for one in r.edge], r.edge[-1]
    # with the most users, later tokens cost more, a straight line on two log scales up to the plot's right side
    full = [(x(s), y(last.usd_per_1k * s / last.between_tokens_s)) for s in (last.between_tokens_s, x.hi)]
    return Frontier(edge, full, edge[0][0] - at.x > 94)


def _out_of_reach(r: Result, at: Box, to: Frontier) -> list[dict]:
    """Name the frontier, and draw the region beyond it in grey."""
    most, who = r.edge[-1].users, f"{_count(r.yours.gpus, GPU)}, {r.yours.bits} bits"
    beyond = [(at.x, at.y), *to.line(at), to.full[1], (at.right, at.bottom), (at.x, at.bottom)]
    tip = f"out of reach of {who}: faster than memory and arithmetic allow, or more users than the {most} whose caches fit"
    side, on = ("end", "idle") if to.inside else ("start", "")
    ground = "idle" if edge_at(to.full, at.right - 8) < at.bottom - 40 and at.w > 300 else "ground"
    return [
        path("beyond", beyond, "idle", tip, closed=True),
        *about("floor", path("edge", to.line(at), "ink", f"the frontier of {who}")),
        path("full", to.full, "limit", f"{most} users: their caches fill the memory"),
        text("edge-name", at.right - 8, at.bottom - 24, "out of reach of", "ink", "small", "end", on=ground),
        text("edge-who", at.right - 8, at.bottom - 8, who, "ink", "small", "end", bold=True, on="idle"),
        text("frontier-name", to.name_x, at.y + 34, "your frontier", "ink", "small", side, bold=True, on=on),
    ]


def _taken(r: Result, at: Box, to: Frontier, late: float, lost: list[tuple[float, float]]) -> list[tuple]:
    """Return the areas that no label may cover, which are lines, and words with a fixed position."""
    taken = [(px - 3, py - 3, px + 3, py + 3) for px, py in _along([*to.line(at), *to.full])]
    taken += [(px - 2, py - 2, px + 2, py + 2) for px, py in _along(lost)]
    taken.append((at.right - 116, at.bottom - 40, at.right, at.bottom))
    left = to.name_x - 88 if to.inside else to.name_x
    taken.append((left, at.y + 22, left + 88, at.y + 40))
    if r.application == "chatbot":
        taken.append((late - 18, at.y - 10, min(at.right, late + 120), at.y + 26))
    return taken


def _plot(r: Result, at: Box) -> list[dict]:
    """Draw the plot. Down and left is better. Your point moves up to the edge and along this edge, never past it."""
    x, y = log(0.0003, 1.0, at.x, at.right), log(0.00005, 2.0, at.bottom, at.y)
    marks = [text("plot-title", 0, 14, "Cost against latency: down and left is better", bold=True)]
    marks += axis_y(
        "cost",
        y,
        at.x,
        "$ for 1,000 tokens",
        lambda v: f"${units.number(v)}",
        right=at.right,
        ticks=(0.001, 0.01, 0.1, 1),
    )
    marks += axis_x("latency", x, at.bottom, "between two tokens", units.seconds, ticks=(0.001, 0.01, 0.1))
    late, to = x(r.late_s), _frontier(r, at, x, y)
    marks += _out_of_reach(r, at, to)
    if r.application == "chatbot":
        tip = f"too late for this chat: above {units.seconds(r.late_s)}"
        foot = to.foot(late)
        marks += [
            path("late", to.late(at, late), "hot", tip, closed=True),
            line("limit", late, foot, late, at.y, "limit", tip),
            handle("pull-late", late, at.y, "hot", drag(LATE, "x", lambda ms: x(ms / 1e3))),
        ]
        for words in ("too late to chat", "too late"):
            if late + 8 + text_width(words, "small", True) > at.right:
                continue
            marks.append(text("limit-name", late + 6, at.y + 22, words, "hot", "small", bold=True))
            break
    spent = r.yours.usd_per_1k * r.yours.users  # at this latency a token's cost is this over the users
    gained = r.yours.usd_per_1k * r.yours.roof_share
    tip = f"the best for {_count(r.yours.users, 'user')}: {units.seconds(r.floor_s)}, {_usd(gained)}"
    mx, my = x(r.yours.between_tokens_s), y(r.yours.usd_per_1k)
    marks += about("reached", line("lost", x(r.floor_s), y(gained), mx, my, "now", tip))
    off = _factor(r, (x(r.floor_s), y(gained)), (mx, my))
    marks += off
    marks += about("floor users", circle("possible", x(r.floor_s), y(gained), 4, "now", tip))
    kx, ky = x(r.knee.between_tokens_s), y(r.knee.usd_per_1k)
    there = (
        f"{_count(r.knee.users, 'user')}, {units.seconds(r.knee.between_tokens_s)}, {_usd(r.knee.usd_per_1k)}"
    )
    marks += about(
        "knee",
        circle("knee", kx, ky, 9, "useful", f"the cheapest place on your frontier that serves: {there}"),
    )
    if r.b_made_perfect:
        bx, by = x(r.b.between_tokens_s), y(r.b.usd_per_1k)
        marks.append(
            line("b-gains", bx, by, mx, my, "secondary", "the same users, GPUs and bits as B, at the peak")
        )
    names = {
        "a": (f"A: {_count(r.a.users, 'user')} on {r.a.gpus} GPUs", "A"),
        "b": (f"B: {r.b.users} users on {r.b.gpus} GPUs, {units.times(r.cost_ratio)} cheaper than A", f"B: {units.times(r.cost_ratio)} below A", "B"),
        "yours": (f"yours: {_count(r.yours.users, 'user')} on {_count(r.yours.gpus, 'GPU')}", "yours"),
    }  # fmt: skip
    if not r.b.meets and r.application == "medical":
        names["b"] = (f"B: {r.b.bits} bits, unfit", "B: unfit")
    if math.hypot(kx - mx, ky - my) <= 24:
        names["yours"] = ("yours, close to the cheapest place", "yours", "yours")
    wanted = []
    for id, name, p, role in _known(r):
        px, py = x(p.between_tokens_s), y(p.usd_per_1k)
        tip = f"{name}: {units.seconds(p.between_tokens_s)} between tokens, {_usd(p.usd_per_1k)} for 1,000; "
        tip += f"{units.percent(p.roof_share, 0)} of what its own GPUs could do"
        if id != "yours":
            marks.append(circle(f"{id}-dot", px, py, 7, role, tip))
        wanted.append((id, names[id], px, py, "hot" if "unfit" in names[id][0] else role))
    if math.hypot(kx - mx, ky - my) > 24:
        wanted.append(
            (
                "knee",
                (f"cheapest: {there}", f"cheapest: {_count(r.knee.users, 'user')}", "cheapest"),
                kx,
                ky,
                "useful",
            )
        )
    if r.yours.roof_share < 0.995:
        wanted.append(
            (
                "possible",
                (f"best for {r.yours.users}: {units.seconds(r.floor_s)}", "best"),
                x(r.floor_s),
                y(gained),
                "muted",
            )
        )
    fit = [n for n in USERS.values() if n <= r.most_users]
    pull_users = drag(USERS, "y", lambda n: y(spent / r.yours.users * _per_user(r, n)))
    pull_users |= {"at": pull_users["at"][: len(fit)], "to": fit}
    mine = handle(
        "yours-dot",
        mx,
        my,
        "now",
        drag(REACHED, "x", lambda share: x(r.floor_s / (share / 100))),
        pull_users,
        tip=tip,
    )
    taken = _taken(r, at, to, late, [(x(r.floor_s), y(gained)), (mx, my)])
    taken += [extent(one) for one in off]
    upright = [(late - 2, at.y, late + 2, at.bottom)] if r.application == "chatbot" else []
    return marks + _labels(wanted, taken, upright, to.ground, at) + [mine]


def _factor(r: Result, peak: tuple[float, float], yours: tuple[float, float]) -> list[dict]:
    """Write on the line from yours to its frontier how many times as late and as dear yours is."""
    words = f"{units.times(1 / r.yours.roof_share, 2)} off"
    wide = text_width(words, "body", True)
    (a, b), (c, d) = peak, yours
    if c - a < wide + 36:
        return []
    return about(
        "reached",
        text("off", (a + c) / 2 - 4, (b + d) / 2 + 5, words, "now", "body", "middle", True, "ground"),
    )


def edge_at(two: list[tuple[float, float]], x: float) -> float:
    """Return the height at x of a straight line through two points."""
    (x1, y1), (x2, y2) = two
    return y1 + (y2 - y1) * (x - x1) / (x2 - x1)


def _along(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Points close enough on a line that no name slips between them."""
    out = []
    for (x1, y1), (x2, y2) in zip(points, points[1:], strict=False):
        n = max(1, int(max(abs(x2 - x1), abs(y2 - y1)) / 8))
        out += [(x1 + (x2 - x1) * i / n, y1 + (y2 - y1) * i / n) for i in range(n + 1)]
    return out


def _per_user(r: Result, users: int) -> float:
    """The cost of a token with other users, over today's, at the same share of the roof."""
    other = _fastest(users, r.yours.gpus, r.yours.bits).between_tokens_s
    return (other / users) / (r.floor_s / r.yours.users)


def _labels(wanted: list[tuple], taken: list[tuple], upright: list[tuple], ground, at: Box) -> list[dict]:
    """Put each name next to its dot, on the first side clear of all dots, of the lines and of the names so far.

    The small dot's name may be on the `upright` line, on a plate, because away from its dot it would seem unrelated.
    """
    taken = taken + [
        (x - 16, y - 16, x + 16, y + 16) if role == "now" else (x - 8, y - 8, x + 8, y + 8)
        for _, _, x, y, role in wanted
    ]
    marks = []
    for id, name, x, y, role in ((id, *option) for id, *option in _options(wanted, marks)):
        wide, found = text_width(name, "small", role != "muted"), None
        near, far = (23, 26) if role == "now" else (12, 18) if role != "muted" else (9, 11)
        for left, base in (
            (x + near, y + 4),
            (x - near - wide, y + 4),
            (x + far, y - 8),
            (x - far - wide, y - 8),
            (x + far, y + 17),
            (x - far - wide, y + 17),
            (x - wide / 2, y - 24),
            (x - wide / 2, y + 32),
            (x + 20, y - 30),
            (x + 20, y + 36),
        ):
            box = (left, base - 10, left + wide, base + 4)
            inside = at.x < box[0] and at.y < box[1] and box[2] < at.right - 2 and box[3] < at.bottom
            hard = taken if role == "muted" else [*taken, *upright]
            clear = all(box[2] < t[0] or t[2] < box[0] or box[3] < t[1] or t[3] < box[1] for t in hard)
            if found is None and inside and clear:
                found = (left, base, box)
        if found:
            taken.append(found[2])
            on = ground(found[0] + wide / 2, found[1] - 4)
            if any(found[2][0] < line[2] and line[0] < found[2][2] for line in upright):
                on = "ground"
            marks.append(
                text(f"{id}-name", found[0], found[1], name, role, "small", bold=role != "muted", on=on)
            )
    return marks


def _options(wanted: list[tuple], marks: list[dict]):
    """Offer each name from its longest form to its shortest, until a form fits somewhere."""
    for id, names, *rest in wanted:
        for name in names:
            if any(mark["id"] == f"{id}-name" for mark in marks):
                break
            yield (id, name, *rest)


def _warning(r: Result) -> str:
    if r.yours.meets:
        return ""
    why = "it is too late" if r.application == "chatbot" else "its weights are too narrow"
    return f"Yours does not serve this application: {why}."


def _takeaway(r: Result) -> str:
    y = r.yours
    if y.beaten:
        return "Another setup beats yours in both latency and cost. Don't stay here."
    if y.roof_share < 0.995 and r.best_in_all == "yours":
        return "Yours is best in all five, because A and B are far from their own frontiers."
    if y.roof_share < 0.995:
        who, more = r.best.split(":")[0], units.times(1 / y.roof_share, 2)
        there = f"{_count(r.knee.users, 'user')} at {units.seconds(r.knee.between_tokens_s)}"
        if not who:
            return f"None of the three is in time. The frontier's cheapest place is {there}."
        if who == "yours":
            yours = (
                f"{_count(y.users, 'user')} can have {units.seconds(r.floor_s)}, {more} sooner and cheaper."
            )
            more_users = f"With {r.knee.users}, a token is cheapest."
            return f"{yours} {more_users}" if y.users != r.knee.users else yours
        return f"{who} serves this best. Yours is {more} off its frontier, so faster kernels improve both."
    if r.b_made_perfect:
        return f"This is B at the peak: {units.times(r.b.between_tokens_s / y.between_tokens_s)} sooner and cheaper, for the same users."
    if y.users > r.sharing_users:
        return f"Past the knee at {int(r.sharing_users)} users, one more makes all wait longer and no token cheaper."
    return "On the frontier you can only trade: more users make each token cheaper but slower."


def _table(r: Result):
    columns = (
        "configuration",
        "GPUs",
        "users",
        Column("between tokens", "s", units.seconds),
        Column("tokens a second"),
        Column("1,000 tokens", "$", _usd),
        Column("weights", "bits"),
        Column("weights a GPU", "B", units.si_bytes),
        Column("of its roof", show=units.percent),
    )
    return table(
        columns,
        [
            (
                p.name,
                p.gpus,
                p.users,
                p.between_tokens_s,
                p.tokens_s,
                p.usd_per_1k,
                p.bits,
                p.weight_bytes,
                p.roof_share,
            )
            for p in (r.a, r.b, r.yours)
        ],
    )


def scene(r: Result, measured: dict | None = None, width: int = WIDE) -> Scene:
    plot_at, height = PLACES[width == WIDE]
    wait = figure("between your tokens", r.yours.between_tokens_s, units.seconds, "now", "between")
    price = figure("per 1,000 of your tokens", r.yours.usd_per_1k, _usd, "now")
    floor = figure("between tokens at the peak", r.floor_s, units.seconds, "ink", "floor")
    knee = figure(
        "users make a token cheapest" if r.knee.users > 1 else "user makes a token cheapest",
        r.knee.users,
        units.count,
        "useful",
        "knee",
    )
    rate = units.number(r.yours.tokens_s)
    busy = r.yours.users > r.sharing_users
    return Scene(
        summary=f"Yours gives each of {_count(r.yours.users, 'user')} a token every {wait.text}, at {price.text} for 1,000, "
        f"where {floor.text} would be the least; the knee of the frontier has {knee.text} users, of the {r.most_users} that fit. A token of A costs "
        f"{units.times(r.cost_ratio)} one of B, and B's users wait {units.times(r.latency_ratio)} as long as A's.",
        takeaway=_takeaway(r),
        marks=_plot(r, plot_at),
        figures=(wait, price, floor, knee),
        table=_table(r),
        height=height,
        width=width,
        formula=(
            (
                f"{{floor:least time}} = weights {'multiplied' if busy else 'read once'} + caches of {{users}}, at the peak of {{gpus:GPUs}}",
                f"{units.seconds(r.weights_s)} + {units.seconds(r.caches_s)} = {{floor:{units.seconds(r.floor_s)}}}",
            ),
            (
                "{between:between tokens} = {floor:least time} / {reached:share reached}",
                f"{{floor:{units.seconds(r.floor_s)}}} / {{reached:{units.percent(r.yours.roof_share, 0)}}} = {{between:{wait.text}}}",
            ),
            (
                "1,000 tokens = {gpus:GPUs} · {usd_per_gpu_hour:$ an hour} / 3600 / tokens a second · 1000",
                f"{{gpus:{r.yours.gpus}}} · {{usd_per_gpu_hour:${units.number(r.usd_per_gpu_hour)}}} / 3600 / {rate} · 1000 = {price.text}",
            ),
        ),
        warning=_warning(r),
        legend=(
            ("ink line", f"your frontier: {_count(r.yours.gpus, GPU)}, {r.yours.bits} bits"),
            (
                "idle",
                f"out of reach; at the slanted edge {r.most_users} users fill the memory",
            ),
        ),
    )


SIMULATOR = Declaration(
    title="Efficiency frontier",
    question="Fast for one user or cheap for many: where should you stand?",
    controls=(
        USERS,
        REACHED,
        powers_of_two("gpus", "GPUs", 4, 1, 16),
        select("application", "Application", "chatbot", WANTS),
        LATE,
        select("bits", "Bits of a weight", 4, {4: "4", 8: "8", 16: "16"}, more=True),
        slider(
            "usd_per_gpu_hour",
            "Price of a GPU hour",
            2.7,
            1.0,
            5.0,
            step=0.1,
            unit="$",
            more=True,
            help="2.70 is what A's $0.12 comes from.",
        ),
    ),
    presets={
        "A chatbot for eight": {},
        "Documents overnight": {"application": "batch", "users": 150, "reached": 50},
        "Quality first": {"application": "medical", "bits": 16, "users": 4, "gpus": 8, "reached": 32},
        "B on its frontier": {"application": "batch", "users": 64, "reached": 100},
        "Beaten twice": {"users": 2, "gpus": 1, "reached": 5},
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
)
