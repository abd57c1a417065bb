"""Show how a chain of kernels writes every intermediate only for the next kernel to read, and a fused one doesn't.

The weights of the GEMM at its head are read once either way, and they are counted, because with few rows they are
nearly everything.
"""

from dataclasses import dataclass

from kernels.machines import MACHINES, machine
from kernels.roofline import cost
from widgets import units
from widgets.charts import Box, Scale, linear, text_width
from widgets.controls import powers_of_two, select, slider
from widgets.declare import Declaration, Prediction, Stepper
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
    path,
    rect,
    table,
    text,
)

CHAIN = ("GEMM", "GELU", "LayerNorm", "dropout", "scale", "clip")
SHORT = ("GEMM", "GELU", "Norm", "drop", "scale", "clip")
LONGEST = len(CHAIN)
RISE = 60  # from the top of the kernels down to HBM
STEPS = 32  # of the race, both ways on one clock
OPERATIONS = slider("operations", "Operations in the chain", 3, 1, LONGEST)
# (HBM of the chain, HBM of the one kernel, the bars, height)
PLACES = {
    True: (Box(56, 82, 664, 24), Box(56, 220, 664, 24), Box(110, 308, 436, 64), 424),
    False: (Box(40, 100, 300, 24), Box(40, 258, 300, 24), Box(0, 356, 330, 100), 566),
}


@dataclass(frozen=True)
class Laid:
    """Hold the positions in a lane, those of the widest box, the GEMM over X and W, and each Z between two kernels."""

    lane: Box
    operations: int

    @property
    def wide(self) -> bool:
        return self.lane.w > 400

    @property
    def box(self) -> float:
        return 44 if self.wide else 24

    @property
    def edge(self) -> float:
        """Draw an edge from the lane's end to the middle of the box."""
        return 28 if self.wide else 13

    @property
    def x(self) -> float:
        return self.lane.x + self.edge

    @property
    def w(self) -> float:
        return self.x + (60 if self.wide else 30)

    @property
    def y(self) -> float:
        return self.lane.right - self.edge

    def border(self, i: int) -> float:
        """Return where kernel i begins and kernel i - 1 ends, which is where Z_i is drawn."""
        if i in (0, self.operations):
            return self.lane.x if i == 0 else self.lane.right
        first = max(self.lane.w / self.operations, 170 if self.wide else 84)
        return self.lane.x + first + (i - 1) * (self.lane.w - first) / max(1, self.operations - 1)


@dataclass(frozen=True)
class Result:
    operations: int
    names: tuple[str, ...]
    rows: int
    width: int
    layers: int
    element_bytes: int
    machine: str
    tensor_bytes: float
    intermediates: int
    materialised_bytes: float  # of one layer
    intermediate_traffic_bytes: float
    unfused_bytes: float
    fused_bytes: float
    unfused_passes: int  # of a layer over memory
    fused_passes: int
    ratio: float  # of what passes from operation to operation
    weights_bytes: float  # of the GEMM, all layers
    ratio_with_weights: float
    saved_s: float
    unfused_s: float
    fused_s: float
    arithmetic_s: float  # of the GEMM, all layers, whichever way


def run(operations, rows, width, layers, element_bytes, machine_name):
    chain = cost.chain_traffic(operations, rows, width, element_bytes, layers)
    bandwidth = machine(machine_name).bandwidth
    before, after = chain.round_trips
    weights = cost.gemm_weights_bytes(width, element_bytes, layers)
    unfused, fused = chain.unfused_bytes + weights, chain.fused_bytes + weights
    return Result(
        operations,
        CHAIN[:operations],
        rows,
        width,
        layers,
        element_bytes,
        machine_name,
        chain.one_tensor_bytes,
        chain.intermediates,
        chain.materialised_bytes,
        chain.intermediate_traffic_bytes,
        chain.unfused_bytes,
        chain.fused_bytes,
        before,
        after,
        chain.ratio,
        weights,
        chain.ratio_with(weights),
        chain.time_saved_s(bandwidth),
        unfused / bandwidth,
        fused / bandwidth,
        layers * cost.gemm(rows, width, width).flops / machine(machine_name).rate("fp16"),
    )


def _arrow(id: str, x: float, start: float, end: float, role: str, tip: str) -> list[dict]:
    back = 7 if start > end else -7
    head = [(x - 5, end + back), (x, end), (x + 5, end + back)]
    return [line(id, x, start, x, end, role, tip), path(f"{id}-head", head, role)]


def _tensor(
    id: str, x: float, at: Laid, name: str, role: str, size: str, tip: str, share: float
) -> list[dict]:
    """Draw a box in HBM, as wide as its share of the largest tensor, with its bytes below if they fit.

    A hatched box also has its name below, a small box at its side.
    """
    hatched, wide = role == "waste", max(3.0, at.box * share)
    box = rect(id, x - wide / 2, at.lane.y + 3, wide, at.lane.h - 6, role, tip)
    inside, under = ("", name) if hatched else (name, "")
    if not hatched and not at.wide:  # a phone's boxes have no room for a letter
        words = text(f"{id}-name", x, at.lane.bottom + 15, name, role, "small", "middle", bold=True)
        return about({"memory": "weights"}.get(role, "must"), [box, words])
    if not hatched and wide < 14:
        beside = text(f"{id}-name", x - 6, at.lane.y + 17, name, role, "small", "end", on="idle")
        words = text(f"{id}-size", x, at.lane.bottom + 15, size, role, "small", "middle")
        return about({"memory": "weights"}.get(role, "must"), [box, beside, words])
    if at.wide:
        under = f"{name}: {size}" if hatched else size
    words = [
        (f"{id}-name", at.lane.y + 17, inside, "inverse"),
        (f"{id}-size", at.lane.bottom + 15, under, role),
    ]
    marks = [
        box,
        *(text(name, x, y, s, ink, "small", "middle", ink == "inverse") for name, y, s, ink in words if s),
    ]
    return about({"waste": "intermediates", "memory": "weights"}.get(role, "must"), marks)


def _shares(r: Result) -> tuple[float, float]:
    """Return the bytes of a tensor and of W as shares of the larger of the two."""
    most = max(r.tensor_bytes, r.weights_bytes / r.layers)
    return r.tensor_bytes / most, r.weights_bytes / r.layers / most


def _ends(id: str, at: Laid, r: Result) -> list[dict]:
    """Draw the tensors that every way must move, X and the weights in and Y out."""
    low, high = at.lane.y, at.lane.y - RISE + 30
    size, weights = units.si_bytes(r.tensor_bytes), units.si_bytes(r.weights_bytes / r.layers)
    share, heavy = _shares(r)
    marks = [
        *_tensor(f"{id}-x", at.x, at, "X", "useful", size, f"X: {size}", share),
        *_tensor(f"{id}-w", at.w, at, "W", "memory", weights, f"W, the GEMM's weights: {weights}", heavy),
        *_tensor(f"{id}-y", at.y, at, "Y", "useful", size, f"Y: {size}", share),
        *_arrow(f"{id}-x-read", at.x, low, high, "useful", f"reads X, {size}"),
        *about("weights", _arrow(f"{id}-w-read", at.w, low, high, "memory", f"GEMM reads W, {weights}")),
        *_arrow(f"{id}-y-write", at.y, high, low, "useful", f"writes Y, {size}"),
    ]
    if not at.wide:
        words = f"W {weights}, every other box {size}"
        marks.append(text(f"{id}-sizes", at.lane.right, at.lane.bottom + 31, words, "muted", "small", "end"))
    return marks


def _lane(id: str, lane: Box, title: str) -> list[dict]:
    left = lane.x - 8
    return [
        text(
            f"{id}-title", 0, lane.y - RISE - 10, title, bold=True, size="body" if lane.w > 400 else "small"
        ),
        rect(f"{id}-hbm", lane.x, lane.y, lane.w, lane.h, "idle", "HBM"),
        text(f"{id}-hbm-name", left, lane.y + 17, "HBM", "muted", "small", "end"),
        text(f"{id}-sm-name", left, lane.y - RISE + 20, "chip", "muted", "small", "end"),
    ]


def _passes(tensors: int, wide: bool) -> str:
    return f"{tensors} passes over HBM a layer, and 1 for W" if wide else f"{tensors} passes a layer, 1 for W"


def _chain(r: Result, lane: Box) -> list[dict]:
    """Draw one kernel per operation. Each reads the previous one's output."""
    at, size, top = Laid(lane, r.operations), units.si_bytes(r.tensor_bytes), lane.y - RISE
    each = "A kernel for each operation" if at.wide else "A kernel each"
    marks = _lane("chain", lane, f"{each}: {_passes(r.unfused_passes, at.wide)}")
    gap, apart = (8, 13) if at.wide else (4, 7)
    for i, name in enumerate(r.names):
        left, right = at.border(i) + gap / 2 * (i > 0), at.border(i + 1) - gap / 2 * (i < r.operations - 1)
        words = name if at.wide else SHORT[i]
        marks += [
            rect(f"op{i}", left, top, right - left, 30, "primary", f"kernel {i + 1}: {name}"),
            text(f"op{i}-name", (left + right) / 2, top + 20, words, "inverse", "small", "middle", bold=True),
        ]
        if i:
            x, tip = at.border(i), f"Z{i}: {size}, written and read again"
            marks += _tensor(f"z{i}", x, at, f"Z{i}", "waste", size, tip, _shares(r)[0])
            write = _arrow(f"write{i}", x - apart, top + 30, lane.y, "hot", f"{r.names[i - 1]} writes {size}")
            read = _arrow(f"read{i}", x + apart, lane.y, top + 30, "hot", f"{name} reads {size}")
            marks += about("intermediates", write + read)
    return marks + _ends("chain", at, r)


def _fused(r: Result, lane: Box) -> list[dict]:
    """Draw the same operations inside one kernel, with the intermediates on the chip."""
    at, top = Laid(lane, r.operations), lane.y - RISE
    marks = _lane("fused", lane, f"One kernel: {_passes(r.fused_passes, at.wide)}")
    marks.append(rect("kernel", lane.x, top, lane.w, 30, "primary", "one kernel for the whole chain"))
    for i, name in enumerate(r.names):
        x, words = (at.border(i) + at.border(i + 1)) / 2, name if at.wide else SHORT[i]
        marks.append(text(f"in{i}", x, top + 20, words, "inverse", "small", "middle", bold=True))
        if i and at.wide:
            marks.append(text(f"then{i}", at.border(i), top + 20, "→", "inverse", "small", "middle"))
    if r.intermediates and at.wide:
        stays = (
            "Z1"
            if r.intermediates == 1
            else "Z1 and Z2"
            if r.intermediates == 2
            else f"Z1 to Z{r.intermediates}"
        )
        verb = "stays" if r.intermediates == 1 else "stay"
        middle = (at.w + at.y) / 2
        marks.append(
            text(
                "stay",
                middle,
                lane.y + 17,
                f"{stays} {verb} on the chip",
                "muted",
                "small",
                "middle",
                on="idle",
            )
        )
    return marks + _ends("fused", at, r)


@dataclass(frozen=True)
class Transfer:
    """Hold one tensor on its way between HBM and the chip, once for each layer."""

    arrow: str
    role: str
    part: str  # of the bar, for weights, must, waste
    size: float  # bytes, all layers


def _transfers(r: Result, id: str) -> list[Transfer]:
    """Return what one of the two ways moves, in its order."""
    size = r.tensor_bytes * r.layers
    between = [
        Transfer(f"{way}{i}", "hot", "waste", size)
        for i in range(1, r.operations)
        for way in ("write", "read")
        if id == "chain"
    ]
    return [
        Transfer(f"{id}-w-read", "memory", "weights", r.weights_bytes),
        Transfer(f"{id}-x-read", "useful", "must", size),
        *between,
        Transfer(f"{id}-y-write", "useful", "must", size),
    ]


def _moved(r: Result, id: str, by_now: float) -> tuple[dict[str, float], str, float]:
    """Return the bytes of each part moved so far, the arrow that is at work, and how much of its tensor is through."""
    done = {"weights": 0.0, "must": 0.0, "waste": 0.0}
    for one in _transfers(r, id):
        through = min(1.0, max(0.0, by_now / one.size))
        done[one.part] += through * one.size
        by_now -= one.size
        if by_now < -1e-6 * one.size:
            return done, one.arrow, through
    return done, "", 1.0


def _on_the_way(r: Result, by_now: float, drawn: list[dict]) -> list[dict]:
    """Draw a dot on each lane's working arrow, as far along it as its bytes, since its speed is the memory's rate."""
    arrows, marks = {mark["id"]: mark for mark in drawn}, []
    for id in ("chain", "fused"):
        _, arrow, through = _moved(r, id, by_now)
        if arrow:
            at, role = arrows[arrow], next(one.role for one in _transfers(r, id) if one.arrow == arrow)
            y = at["y"] + through * (at["y2"] - at["y"])
            tip = f"{units.percent(through, 0)} of this tensor has moved"
            marks.append(circle(f"{id}-dot", at["x"], y, 6, role, tip))
    return marks


def _bars(r: Result, measured: dict, box: Box, by_now: float) -> list[dict]:
    """Draw the bytes of both ways so far, on the scale of the longest chain. The upper bar's end is the chain's length."""
    wide = box.x > 0
    tensors = 2 * r.tensor_bytes * r.layers
    x = linear(0, r.weights_bytes + LONGEST * tensors, box.x, box.right)
    layers = "one layer" if r.layers == 1 else f"{r.layers} layers"
    marks = [text("bars-title", 0, box.y - 12, f"Bytes over HBM, {layers}{', and the time they take' * wide} on {r.machine}", bold=True)]  # fmt: skip
    pitch = 34 if wide else 50
    rows = (("unfused", "a kernel each", r.unfused_bytes, r.unfused_s, "ink"),
            ("fused", "one kernel", r.fused_bytes, r.fused_s, "useful"))  # fmt: skip
    for i, (id, name, moved, seconds, ink) in enumerate(rows):
        top = box.y + i * pitch + (0 if wide else 16)
        whole, at = x(r.weights_bytes + moved), box.x
        words = f"{units.si_bytes(moved + r.weights_bytes)}: {units.seconds(seconds)}"
        marks.append(rect(f"{id}-whole", box.x, top + 2, whole - box.x, 24, "idle", f"in all {words}"))
        done, arrow, _ = _moved(r, "chain" if id == "unfused" else "fused", by_now)
        for part, role, term, what in (
            ("weights", "memory", "weights", "W"),
            ("must", "useful", "must", "X and Y"),
            ("waste", "waste", "intermediates", "intermediates, written and read"),
        ):
            right = x(sum(done.values())) if part == "waste" else at + x(done[part]) - box.x
            tip = f"{what}: {units.si_bytes(done[part])}"
            if part != "waste" or id == "unfused" and r.intermediates:
                marks += about(term, rect(f"{id}-{part}", at, top + 2, max(0, right - at), 24, role, tip))
            at = right
        ink = "muted" if arrow else ink
        marks.append(
            text(
                f"{id}-name",
                box.x - 12 if wide else 0,
                top + (19 if wide else -4),
                name,
                anchor="end" if wide else "start",
            )
        )
        marks.append(
            text(
                f"{id}-moved",
                720 if wide else 340,
                top + (19 if wide else -4),
                words,
                ink,
                anchor="end",
                bold=True,
            )
        )
    marks += _more(r, x, box, pitch) + _arithmetic(r, x, box, pitch)
    end = x(r.weights_bytes + r.unfused_bytes)
    marks.append(handle("pull-chain", end, box.y + (14 if wide else 30), "primary",
                        drag(OPERATIONS, "x", lambda n: x(r.weights_bytes + n * tensors))))  # fmt: skip
    if "bytes_moved" in measured:
        marks += _yours(r, measured["bytes_moved"], x, box, pitch)
    return marks


def _arithmetic(r: Result, x: Scale, box: Box, pitch: float) -> list[dict]:
    """Draw how long the GEMM's arithmetic takes, at the scale on which the bytes are as long as their time."""
    wide, longest = box.x > 0, r.arithmetic_s * machine(r.machine).bandwidth
    top, words = box.y + 2 * pitch + (26 if wide else 50), f"{units.seconds(r.arithmetic_s)} either way"
    past = longest > x.hi
    name, low = ("arithmetic", top + 11) if wide else ("the GEMM's arithmetic", top - 6)
    marks = [
        rect("arithmetic", box.x, top, max(1, x(min(longest, x.hi)) - box.x), 12, "compute", f"the GEMM's arithmetic: {words}"),
        text("arithmetic-name", box.x - 12 if wide else 0, low, name, anchor="end" if wide else "start"),
        text("arithmetic-time", 720 if wide else 340, low, words + (", past the axis" if past and wide else ""), "compute", anchor="end", bold=True),
    ]  # fmt: skip
    return marks


def _yours(r: Result, moved: float, x: Scale, box: Box, pitch: float) -> list[dict]:
    """Draw the bytes of the learner's kernel on the lower bar."""
    wide, words = box.x > 0, f"yours: {units.si_bytes(moved)}"
    y, under = box.y + pitch + (14 if wide else 30), box.y + 2 * pitch + (14 if wide else 76)
    return [
        circle("yours", x(r.weights_bytes + moved), y, 7, "measured", words),
        text(
            "yours-name",
            720 if wide else 0,
            under,
            words,
            "measured",
            "small",
            "end" if wide else "start",
            True,
        ),
    ]


def _more(r: Result, x: Scale, box: Box, pitch: float) -> list[dict]:
    """Draw the answer, the bytes that the chain moves and one kernel doesn't, in the room above the shorter bar's end."""
    if not r.intermediates:
        return []
    wide = box.x > 0
    left, right = x(r.weights_bytes + r.fused_bytes), x(r.weights_bytes + r.unfused_bytes)
    low = box.y + pitch + (14 if wide else 30)
    size = units.si_bytes(r.intermediate_traffic_bytes)
    marks = [
        line("more-from", left, low - 12, left, low + 12, "waste"),
        line("more-to", right, low - (pitch - 12 if wide else 12), right, low + 12, "waste"),
        line("more", left, low, right, low, "waste", f"{size} more"),
    ]
    words = f"{size} that one kernel does not move"
    half = text_width(words, "small", True) / 2
    middle = min(max((left + right) / 2, box.x + half), (546 if wide else 340) - half)
    under = box.y + 2 * pitch + (14 if wide else 24)
    return about(
        "intermediates", *marks, text("more-name", middle, under, words, "waste", "small", "middle", True)
    )


def _ratio(ratio: float) -> str:
    return units.times(ratio, 3 if ratio >= 1.005 else 5)


def _saved(r: Result) -> str:
    """Return the share of all bytes that one kernel saves."""
    share = 1 - 1 / r.ratio_with_weights
    return units.percent(share) if share else "nothing"


def _takeaway(r: Result) -> str:
    if r.operations == 1:
        return "One operation has nothing to fuse with."
    if r.ratio_with_weights < 1.1:
        return "With few rows nearly all bytes are weights, so fusing the chain saves very few."
    if r.layers > 1:
        saved = units.si_bytes(r.intermediate_traffic_bytes)
        return f"Every layer writes its intermediates and reads them again. Fused, {r.layers} layers save {saved}."
    return f"What is never written need not be read. With W counted: {units.times(r.ratio_with_weights)} fewer bytes."


def frames(r: Result, measured: dict | None = None, width: int = WIDE) -> list[Scene]:
    """Return the race, both ways on one clock. The last step shows all bytes."""
    measured = measured or {}
    chain_at, fused_at, bars_at, height = PLACES[width == WIDE]
    traffic = figure(
        "of intermediates moved",
        r.intermediate_traffic_bytes,
        units.si_bytes,
        "hot",
        "intermediates",
    )
    fewer = r.ratio_with_weights >= 1.005
    label = "fewer bytes if fused" if fewer else f"the bytes, {_saved(r)} saved"
    whole = figure(label, r.ratio_with_weights, _ratio, "useful" if fewer else "ink", "fewer")
    arithmetic = figure("of arithmetic either way", r.arithmetic_s, units.seconds, "primary")
    saved = figure(f"saved on {r.machine} at best", r.saved_s, units.seconds)
    tensor, weights = units.si_bytes(r.tensor_bytes), units.si_bytes(r.weights_bytes)
    beside = ()
    if "bytes_moved" in measured:
        beside = (beside_model("bytes", measured["bytes_moved"], r.fused_bytes, units.si_bytes),)
    columns = (
        "done by",
        "passes a layer",
        Column("between operations", "B", units.si_bytes),
        Column("weights", "B", units.si_bytes),
        Column("time", "s", units.seconds),
    )
    same = dict(
        summary=f"In {', '.join(r.names)} each intermediate has {tensor}, so a kernel for each operation moves {traffic.text} "
        f"of intermediates. With the GEMM's {weights} of weights these kernels move {whole.text} the bytes of one kernel, "
        f"which saves {saved.text} of their time. The GEMM's arithmetic takes {arithmetic.text} either way.",
        takeaway=_takeaway(r),
        figures=(whole, traffic, saved, arithmetic),
        table=table(columns, [("a kernel each", r.unfused_passes, r.unfused_bytes, r.weights_bytes, r.unfused_s),
                              ("one kernel", r.fused_passes, r.fused_bytes, r.weights_bytes, r.fused_s)]),
        height=height,
        width=width,
        formula=(
            ("{intermediates} = 2 · ({operations} − 1) · {rows} · {width} · bytes · {layers}",
             f"2 · {r.intermediates} · {{rows:{r.rows}}} · {{width:{r.width}}} · {r.element_bytes} · "
             f"{{layers:{r.layers}}} = {{intermediates:{traffic.text}}}"),
            ("{fewer} = ({weights} + all passes) / ({weights} + {must:X and Y})",
             f"({{weights:{weights}}} + {units.si_bytes(r.unfused_bytes)}) / ({{weights:{weights}}} + "
             f"{{must:{units.si_bytes(r.fused_bytes)}}}) = {{fewer:{whole.text}}}"),
        ),
        beside=beside,
        legend=(("memory", "the GEMM's weights"), ("useful", "X and Y"), ("waste", "intermediates"), ("compute", "arithmetic")),
    )  # fmt: skip
    still, whole_bytes, scenes = (
        _chain(r, chain_at) + _fused(r, fused_at),
        r.unfused_bytes + r.weights_bytes,
        [],
    )
    for step in range(1, STEPS + 1):
        by_now = whole_bytes * step / STEPS
        marks = still + _on_the_way(r, by_now, still) + _bars(r, measured, bars_at, by_now)
        scenes.append(Scene(marks=marks, caption=_caption(r, by_now), **same))
    return scenes


def _caption(r: Result, by_now: float) -> str:
    all_bytes, ours = r.unfused_bytes + r.weights_bytes, r.fused_bytes + r.weights_bytes
    seconds = units.seconds(r.unfused_s * by_now / all_bytes)
    said = f"After {seconds} the chain has moved {units.si_bytes(by_now)}"
    if by_now < ours * (1 - 1e-9):
        return f"{said}, and so has the one kernel, because this clock counts bytes alone."
    if by_now < all_bytes * (1 - 1e-9):
        return f"{said}. The one kernel's bytes took {units.seconds(r.fused_s)}."
    # a kernel each can't hide its bytes behind the arithmetic of another
    arithmetic = units.seconds(r.arithmetic_s)
    if r.intermediates and r.arithmetic_s > r.fused_s:
        own = f"The one kernel's bytes hide behind {arithmetic} of arithmetic"
        return f"{own}. In a chain, {units.seconds(r.saved_s)} of bytes come on top."
    return (
        f"The chain's {units.si_bytes(all_bytes)} take {seconds}, the one kernel's bytes {units.seconds(r.fused_s)}. "
        f"The GEMM's arithmetic takes {arithmetic} either way."
    )


SIMULATOR = Declaration(
    title="Fusion traffic",
    question="How many bytes does fusing a chain of kernels save?",
    controls=(
        OPERATIONS,
        powers_of_two("rows", "Rows (tokens)", 2048, 1, 16384),
        powers_of_two("width", "Width", 4096, 256, 16384),
        slider("layers", "Layers", 1, 1, 128),
        select("element_bytes", "Bytes of a number", 2, {1: "1: FP8", 2: "2: FP16", 4: "4: FP32"}, more=True),
        select("machine_name", "GPU", "H100", list(MACHINES), more=True),
    ),
    presets={
        "GEMM, GELU, LayerNorm": {},
        "80 layers": {"layers": 80},
        "Six in a chain": {"operations": 6},
        "Decode, one row": {"rows": 1},
    },
    run=run,
    stepper=Stepper("moment", frames, lambda r: STEPS - 1),
    prediction=Prediction(
        "LayerNorm(GELU(X·W + b)) as three kernels, GEMM, GELU and LayerNorm, then as one. X, Y and each intermediate have "
        "16.8 MB. The weights W, which both read once, have 33.6 MB. How many times fewer bytes pass over HBM?",
        "ratio_with_weights",
        "times fewer",
        0.1,
    ),
    measures={"bytes_moved": "bytes that the fused kernel loaded and stored"},
    source="Performance Engineering",
)
