"""Offer the simulators, each a pure model with its scene, in one shared view."""


def show(name: str, measured: dict | None = None, predict: bool = False, **inputs):
    """Show a simulator as a widget, as in show("tile_walk") or show("gemm_tiling.tile_walk", predict=True, m=1).

    With `predict`, the picture stays shut until a number is committed. `measured` is a plain dict with some of the
    keys that the simulator's `measures` names. The scene then shows these values next to the model's.
    """
    from widgets.registry import find
    from widgets.simulator import Simulator

    return Simulator(find(name), measured=measured, predict=predict, inputs=inputs)
