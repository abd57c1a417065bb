"""Small pictures of counted traffic: how often each element of an operand was touched."""

import html
import itertools
import math

import numpy as np

CELLS = 48
SIDE = 150


def coarse(counts: np.ndarray) -> dict:
    """A count map of at most CELLS x CELLS cells, each the mean over its elements, with the true shape and range."""
    flat = counts.reshape(-1, counts.shape[-1]) if counts.ndim else counts.reshape(1, 1)
    rows, cols = (np.array_split(np.arange(n), min(n, CELLS)) for n in flat.shape)
    cells = [[float(flat[np.ix_(r, c)].mean()) for c in cols] for r in rows]
    return {
        "shape": list(counts.shape),
        "low": int(counts.min()),
        "high": int(counts.max()),
        "cells": [[round(v, 2) for v in row] for row in cells],
    }


def svgs(touched: dict) -> list[str]:
    """All operands on one scale, so that what is read sixteen times looks sixteen times as busy as what is read once."""
    most = max((p["high"] for p in touched.values()), default=1)
    return [svg(key.split(":")[1], key.split(":")[0], p, most) for key, p in touched.items()]


def svg(name: str, kind: str, picture: dict, most: int) -> str:
    """One operand as a grid; darker is touched more often, white never. The numbers stand beneath it."""
    cells = picture["cells"]
    rows, cols = len(cells), len(cells[0])
    scale = SIDE / max(rows, cols)
    title = f"{name}: {'read' if kind == 'loads' else 'written'} {span(picture)} an element"
    marks = [
        f'<rect x="{left * scale:.2f}" y="{top * scale:.2f}" width="{wide * scale + 0.3:.2f}" '
        f'height="{tall * scale + 0.3:.2f}" fill="{_shade(value, most)}"/>'
        for left, top, wide, tall, value in blocks(cells)
    ]
    shape = " x ".join(map(str, picture["shape"]))
    return (
        f'<figure style="margin:0"><svg role="img" aria-label="{html.escape(title)}" width="{cols * scale:.0f}" '
        f'height="{rows * scale:.0f}" viewBox="0 0 {cols * scale:.2f} {rows * scale:.2f}" '
        f'style="border:1px solid #8a93a3;background:#fff">{"".join(marks)}</svg>'
        f'<figcaption style="font-size:12px"><b>{html.escape(name)}</b> {shape}<br>{html.escape(title.split(": ")[1])}</figcaption></figure>'
    )


def blocks(cells: list[list[float]]):
    """The grid as few rectangles: equal neighbours in a row together, equal rows below one another together."""
    top = 0
    for row, same in itertools.groupby(cells):
        tall, left = len(list(same)), 0
        for value, run in itertools.groupby(row):
            wide = len(list(run))
            yield left, top, wide, tall, value
            left += wide
        top += tall


def span(picture: dict) -> str:
    low, high = picture["low"], picture["high"]
    if low != high:
        return f"{low} to {high} times"
    return "once" if low == 1 else f"{low} times"


def _shade(value: float, most: float) -> str:
    if value <= 0:
        return "#ffffff"
    share = math.log2(1 + value) / math.log2(1 + most)
    light, dark = (226, 236, 252), (23, 74, 158)
    mix = [round(a + (b - a) * share) for a, b in zip(light, dark, strict=True)]
    return f"#{mix[0]:02x}{mix[1]:02x}{mix[2]:02x}"
