"""What an answer may cost: the busiest device of a placement."""

import numpy as np

from kernels.expert_load_balance import cost, cost_search

MOST_SEARCHED = 12  # experts: what the exact search takes in a moment
OF_OPTIMUM, OF_GREEDY = 4 / 3, 1.02


def busiest(loads: np.ndarray, device_of: np.ndarray, devices: int) -> float:
    return float(np.bincount(device_of, loads, devices).max())


def allowed(loads: np.ndarray, devices: int) -> tuple[float, str]:
    """Tokens that the busiest device may have, and why so many."""
    if len(loads) <= MOST_SEARCHED:
        best = max(cost.device_loads(loads, cost_search.optimum(loads.tolist(), devices), devices))
        return OF_OPTIMUM * best, f"4/3 of the {best:g} of the best placement there is"
    greedy = max(cost.device_loads(loads, cost.greedy(loads.tolist(), devices), devices))
    return OF_GREEDY * greedy, f"2% above the {greedy:g} of heaviest first"


def good_placement(loads: np.ndarray, devices: int, got: np.ndarray) -> str:
    """Empty where each device has its slots full and the busiest is no busier than it may be."""
    if not np.isin(got, np.arange(devices)).all():
        odd = next(int(e) for e in np.flatnonzero(~np.isin(got, np.arange(devices))))
        return f"expert {odd} must be on a device from 0 to {devices - 1}, got {got[odd]:g}"
    device_of, slots = got.astype(int), len(loads) // devices
    held = np.bincount(device_of, minlength=devices)
    if (held != slots).any():
        device = int((held != slots).argmax())
        return f"device {device} must hold {slots} experts, its slots, got {held[device]}"
    most, why = allowed(loads, devices)
    tokens = busiest(loads, device_of, devices)
    if tokens <= most * (1 + 1e-9):
        return ""
    device = int(np.bincount(device_of, loads, devices).argmax())
    return f"device {device} runs {tokens:g} tokens, at most {most:.5g} are allowed: {why}"
