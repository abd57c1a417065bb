"""Weigh bytes saved against unpacking added in the ledger of one decode step, and find the batch at which it tips."""

from kernels.machines import MACHINES
from widgets import units
from widgets.controls import log_slider, powers_of_two, select, slider, steps
from widgets.declare import Declaration, Prediction
from widgets.quantization_layouts.payoff_model import DENSE_BITS, MOST_BATCH, Result, run
from widgets.quantization_layouts.payoff_picture import (
    BATCH,
    DEQUANT,
    PLACES,
    bits,
    chart,
    ledger,
    yours,
)
from widgets.scene import WIDE, Column, Scene, beside_model, figure, table, text

UNPACKED = {
    "exposed": "exposed: its time adds",
    "fused": "in the kernel, before each multiply",
    "asynchronous": "in the kernel, during an asynchronous multiply",
    "separate": "in a kernel of its own",
}


def _title(r: Result) -> str:
    if r.break_even_batch == 1:
        return "As the batch grows: not faster at any batch"
    if r.break_even_batch:
        return f"As the batch grows: faster up to {r.break_even_batch - 1}"
    return f"As the batch grows: faster up to {MOST_BATCH} and beyond"


def _takeaway(r: Result) -> str:
    if r.verdict == "nothing to save":
        return "Arithmetic is the limit at this batch, so fewer bytes save no time in any format."
    if r.added_s == 0:
        return "Unpacking is free while it hides in the weight reads, so the whole saving stays."
    eaten = units.percent(r.eaten_share, 0)
    if r.verdict == "eaten":
        return f"Unpacking costs {eaten} of the time that the saved bytes bring, so the step gets no faster."
    if r.verdict == "mostly eaten":
        return f"Unpacking eats {eaten} of the saving. A better kernel is worth more than fewer bits."
    return f"Unpacking eats {eaten} of the saving, and fewer bytes still win."


def _warning(r: Result) -> str:
    if r.verdict == "nothing to save":
        spent = f" and pay {units.seconds(r.added_s)} for unpacking" if r.added_s else ""
        return f"There is nothing to save here. At batch {r.batch} both steps wait for arithmetic{spent}."
    if r.verdict != "eaten":
        return ""
    each = f" for each of the {r.passes} passes" if r.passes > 1 else ""
    budget = f"It would break even at {units.seconds(r.affordable_dequant_s)} of unpacking{each}."
    if not r.affordable_dequant_s:
        budget = (
            "No unpacking is quick enough for a kernel of its own, which writes 16 bits and reads them again."
        )
    return f"Dequantization eats the win. {budget}"


def _formula(r: Result) -> tuple[tuple[str, str], ...]:
    ms = [units.number(1e3 * s) for s in (r.dense_stream_s, r.quant_stream_s, r.compute_s, r.saved_s)]
    total = [units.number(1e3 * s) for s in (r.dense_s, r.saved_s, r.added_s, r.quant_s)]
    return (
        (
            "bits a weight = {bits} + {scale_bits:scale bits} / {group}",
            f"{{bits:{r.bits}}} + {{scale_bits:{r.scale_bits}}}/{{group:{r.group}}} = {units.number(r.bits_per_weight, 4)}",
        ),
        (
            "{saved} = max(dense stream, arithmetic) − max(packed stream, arithmetic)",
            f"max({ms[0]}, {ms[2]}) − max({ms[1]}, {ms[2]}) = {{saved:{ms[3]} ms}}",
        ),
        (
            "{quant:step} = {dense} − {saved} + {added}",
            f"{{dense:{total[0]}}} − {{saved:{total[1]}}} + {{added:{total[2]}}} = {{quant:{total[3]} ms}}",
        ),
    )


def _table(r: Result):
    columns = (
        "format",
        Column("bits a weight", show=lambda v: units.number(v, 4)),
        Column("activations", show=lambda v: f"{v} bits"),
        Column("step", "s", units.seconds),
        Column("as fast", show=units.times),
        "fast with",
        "mind",
    )
    mine = ("yours", r.bits_per_weight, DENSE_BITS, r.quant_s, r.speedup, "", f"a scale for each {r.group}")
    rows = [
        (f.name, f.bits_per_weight, f.activation_bits, f.step_s, f.speedup, ", ".join(f.kernels), f.note)
        for f in r.formats
    ]
    return table(columns, [mine, *rows])


def scene(r: Result, measured: dict | None = None, width: int = WIDE) -> Scene:
    measured, pl = measured or {}, PLACES[width == WIDE]
    lost = r.verdict in ("eaten", "nothing to save")
    saved = figure("of weights no longer read", r.bytes_saved, units.si_bytes, "useful")
    added = figure("added by unpacking", r.added_s, units.seconds, "hot" if r.added_s else "muted", "added")
    step = figure(f"quantized step, was {units.seconds(r.dense_s)}", r.quant_s, units.seconds, "ink")
    speedup = figure("as fast as dense", r.speedup, units.times, "hot" if lost else "primary")
    beside = "speedup" in measured and beside_model(
        "times as fast as dense", measured["speedup"], r.speedup, units.times
    )
    return Scene(
        summary=f"At {bits(r)} a weight and batch {r.batch}, a step reads {saved.text} less and saves "
        f"{units.seconds(r.saved_s)}. Unpacking adds {added.text}. {units.seconds(r.dense_s)} becomes {step.text}, "
        f"{speedup.text} as fast.",
        takeaway=_takeaway(r),
        marks=[
            text("ledger-title", 0, 14, "The account of one decode step", bold=True),
            *ledger(r, pl),
            text("chart-title", 0, pl.chart.y - 22, _title(r), bold=True),
            *chart(r, pl),
            *yours(r, pl, measured),
        ],
        figures=(saved, added, step, speedup),
        table=_table(r),
        height=pl.height,
        width=width,
        formula=_formula(r),
        warning=_warning(r),
        beside=(beside,) if beside else (),
    )


SIMULATOR = Declaration(
    title="Quantization-payoff accountant",
    question="Fewer bits save bytes but need unpacking. Is the step faster in the end?",
    controls=(
        steps("bits", "Weight precision", 4, (2, 3, 4, 5, 6, 8), unit="bits"),
        DEQUANT,
        log_slider(
            "dense_ms",
            "Dense decode time",
            5.2,
            1.0,
            50.0,
            unit="ms",
            help="One step with 16-bit weights at batch 1 takes 5.2 ms for 70B on eight H100.",
        ),
        BATCH,
        select("placement", "Where unpacking happens", "exposed", UNPACKED, more=True),
        powers_of_two("group", "Weights that share a scale", 128, 16, 1024, more=True),
        select(
            "scale_bits",
            "Bits of a scale",
            16,
            {8: "8: FP8 or a power of two", 16: "16: FP16", 32: "32: FP32"},
            more=True,
        ),
        slider(
            "weight_percent",
            "Weights' share of the dense step",
            100,
            20,
            100,
            step=5,
            unit="%",
            more=True,
            help="The rest (attention, communication) stays as it is.",
        ),
        powers_of_two(
            "tile_rows",
            "Rows that share one unpacking",
            64,
            16,
            512,
            more=True,
            help="A batch larger than this unpacks the weights again.",
        ),
        select("machine_name", "GPU", "H100", list(MACHINES), more=True),
    ),
    presets={
        "4 bits, batch 1": {},
        "Unpacking eats the win": {"dequant_ms": 4.6},
        "Hidden in the kernel": {"placement": "fused"},
        "Batch 160": {"batch": 160},
        "A kernel of its own": {"placement": "separate"},
    },
    run=run,
    scene=scene,
    prediction=Prediction(
        "A dense decode step takes 5.2 ms, all of it reading 16-bit weights. With 4-bit weights, a 16-bit scale "
        "for each 128 weights and 1 ms of unpacking that nothing hides, how many times as fast is the step?",
        "speedup",
        "times as fast",
        0.12,
    ),
    measures={"speedup": "time of the dense kernel over time of the quantized one, measured together"},
    source="Beyond attention; Performance Engineering; k-bit deployment",
)
