"""Small pictures of counted traffic: how often each element of an operand was touched."""

import html

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


def svg(name: str, kind: str, picture: dict) -> str:
    """One operand as a grid; darker is touched more often, white never. The numbers stand beside it."""
    cells, high = picture["cells"], max(picture["high"], 1)
    rows, cols = len(cells), len(cells[0])
    scale = SIDE / max(rows, cols)
    title = f"{name}: {'read' if kind == 'loads' else 'written'} {span(picture)} an element"
    marks = [
        f'<rect x="{c * scale:.2f}" y="{r * scale:.2f}" width="{scale + 0.3:.2f}" height="{scale + 0.3:.2f}" '
        f'fill="{_shade(value / high)}"/>'
        for r, row in enumerate(cells)
        for c, value in enumerate(row)
    ]
    shape = " x ".join(map(str, picture["shape"]))
    return (
        f'<figure style="margin:0"><svg role="img" aria-label="{html.escape(title)}" width="{cols * scale:.0f}" '
        f'height="{rows * scale:.0f}" viewBox="0 0 {cols * scale:.2f} {rows * scale:.2f}" '
        f'style="border:1px solid #8a93a3;background:#fff">{"".join(marks)}</svg>'
        f'<figcaption style="font-size:12px"><b>{html.escape(name)}</b> {shape}<br>{html.escape(title.split(": ")[1])}</figcaption></figure>'
    )


def span(picture: dict) -> str:
    low, high = picture["low"], picture["high"]
    return f"{low} times" if low == high else f"{low} to {high} times"


def _shade(share: float) -> str:
    if share <= 0:
        return "#ffffff"
    light, dark = (214, 228, 250), (23, 74, 158)
    mix = [round(a + (b - a) * share) for a, b in zip(light, dark, strict=True)]
    return f"#{mix[0]:02x}{mix[1]:02x}{mix[2]:02x}"
