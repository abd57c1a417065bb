"""Draw small pictures of counted traffic: how often each element of an operand was touched, on one scale for all."""

import html
import itertools
import math

import numpy as np

CELLS = 64
LONGEST, THINNEST = 220, 14  # pixels of a picture's sides
STEPS = (1, 2, 4, 8, 16, 32, 64)  # the legend's, so that a count has the same shade in every report


def coarse(counts: np.ndarray) -> dict:
    """Return a count map of at most CELLS x CELLS cells, each the mean over its elements, with the true shape and range."""
    flat = counts.reshape(-1, counts.shape[-1]) if counts.ndim else counts.reshape(1, 1)
    rows, cols = (np.linspace(0, n, min(n, CELLS) + 1).astype(int)[:-1] for n in flat.shape)
    sums = np.add.reduceat(np.add.reduceat(flat.astype(np.float64), rows, axis=0), cols, axis=1)
    tall, wide = np.diff([*rows, flat.shape[0]]), np.diff([*cols, flat.shape[1]])
    return {
        "shape": list(counts.shape),
        "low": int(counts.min()),
        "high": int(counts.max()),
        "cells": np.round(sums / tall[:, None] / wide[None, :], 2).tolist(),
    }


def svgs(touched: dict) -> list[str]:
    """Draw every operand in its true proportions, then the legend."""
    found = [svg(key.split(":")[1], key.split(":")[0], one) for key, one in touched.items()]
    return found + [legend()] if found else []


def sides(shape: list[int]) -> tuple[float, float]:
    """Return width and height in pixels, in the operand's proportions unless it would be too thin to see."""
    rows, cols = math.prod(shape[:-1]) or 1, shape[-1] if shape else 1
    longest = max(rows, cols)
    return max(THINNEST, LONGEST * cols / longest), max(THINNEST, LONGEST * rows / longest)


def svg(name: str, kind: str, picture: dict) -> str:
    """Draw one operand as a grid. A stronger shade means more touches, and untouched stays empty. The numbers are
    printed below."""
    cells, (wide, tall) = picture["cells"], sides(picture["shape"])
    across, down = wide / len(cells[0]), tall / len(cells)
    said = f"{name}: each element is {'read' if kind == 'loads' else 'written'} {span(picture)}"
    marks = "".join(
        f'<rect x="{left * across:.2f}" y="{top * down:.2f}" width="{w * across + 0.3:.2f}" '
        f'height="{h * down + 0.3:.2f}" fill="#1f6fd6" fill-opacity="{opacity(value):.2f}"/>'
        for left, top, w, h, value in blocks(cells)
        if value > 0
    )
    shape = " x ".join(map(str, picture["shape"])) or "1"
    return (
        f'<figure style="margin:0"><svg role="img" aria-label="{html.escape(said)}" width="{wide:.0f}" '
        f'height="{tall:.0f}" viewBox="0 0 {wide:.2f} {tall:.2f}" style="border:1px solid #8a93a3;box-sizing:content-box">{marks}</svg>'
        f'<figcaption style="font-size:12px"><b>{html.escape(name)}</b> {shape}<br>'
        f"{html.escape(said.split(': ')[1])}</figcaption></figure>"
    )


def legend() -> str:
    marks = "".join(
        f'<rect x="{26 * i}" y="0" width="24" height="14" fill="#1f6fd6" fill-opacity="{opacity(n):.2f}"/>'
        f'<text x="{26 * i + 12}" y="26" font-size="11" text-anchor="middle" fill="currentColor">{n}</text>'
        for i, n in enumerate(STEPS)
    )
    width = 26 * len(STEPS)
    return (
        f'<figure style="margin:0"><svg role="img" aria-label="shades: touched 1 to 64 times" width="{width}" '
        f'height="30" viewBox="0 0 {width} 30">{marks}</svg>'
        '<figcaption style="font-size:12px">how often each element is touched (empty: never)</figcaption></figure>'
    )


def opacity(value: float) -> float:
    """Return the shade of a number, the same in every report. Light and dark pages both show through."""
    return min(1.0, 0.16 + 0.84 * math.log2(1 + value) / math.log2(1 + STEPS[-1]))


def blocks(cells: list[list[float]]):
    """Return the grid as few rectangles: equal neighbours in a row joined, then equal adjacent rows."""
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
