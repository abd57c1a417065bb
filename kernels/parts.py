"""Cut parts of a time, and find the rest and the largest part (Amdahl, part by part)."""

from collections.abc import Collection, Mapping

from kernels import require

ROUNDING = 1e-6  # shares written as decimals rarely sum to exactly 1


def split(total_s: float, shares: Mapping[str, float]) -> dict[str, float]:
    """Return the seconds of each part of `total_s`. The shares must sum to 1."""
    require.positive(total_s=total_s)
    require.not_empty(shares=shares)
    require.share(**{f"share of {name}": value for name, value in shares.items()})
    whole = sum(shares.values())
    if abs(whole - 1) > ROUNDING:
        raise ValueError(f"shares must be parts of one whole, got a sum of {whole:g}; make them add up to 1")
    return {name: total_s * value for name, value in shares.items()}


def cut(parts_s: Mapping[str, float], cuts: Mapping[str, float]) -> dict[str, float]:
    """Return each part after removing the share `cuts[part]`, where 0.7 leaves 30% of the part."""
    require.not_negative(**parts_s)
    require.share(**{f"cut of {name}": value for name, value in cuts.items()})
    for name in cuts:
        require.one_of(tuple(parts_s), part=name)
    return {name: time_s * (1 - cuts.get(name, 0.0)) for name, time_s in parts_s.items()}


def shares(parts_s: Mapping[str, float]) -> dict[str, float]:
    """Each part's share of the whole."""
    require.not_negative(**parts_s)
    total_s = sum(parts_s.values())
    require.positive(total_s=total_s)
    return {name: time_s / total_s for name, time_s in parts_s.items()}


def largest(parts_s: Mapping[str, float], leave_out: Collection[str] = ()) -> str:
    """Return the part to look at next, the first among equals."""
    left = {name: time_s for name, time_s in parts_s.items() if name not in leave_out}
    require.not_empty(parts_s=left)
    require.not_negative(**left)
    return max(left, key=left.__getitem__)


def amdahl(share: float, factor: float) -> float:
    """Return how much faster the whole is when `share` of its time is made `factor` times faster."""
    require.share(share=share)
    require.positive(factor=factor)
    return 1 / (1 - share + share / factor)


def share_behind(whole_speedup: float, factor: float) -> float:
    """The share of the time a part must have had, if making it `factor` faster gave `whole_speedup`."""
    require.positive(whole_speedup=whole_speedup, factor=factor)
    if not 1 <= whole_speedup <= factor or factor == 1:
        raise ValueError(
            f"whole_speedup must be from 1 to the part's factor {factor:g}, got {whole_speedup:g}; "
            "a part cannot speed the whole up by more than itself"
        )
    return (1 - 1 / whole_speedup) / (1 - 1 / factor)
