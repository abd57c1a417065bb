"""Offer the simulators: pure models, their scenes, and one shared view."""


def show(name: str, measured: dict | None = None, predict: bool = False, **inputs):
    """Show a simulator as a widget: show("tile_walk"), show("gemm_tiling.tile_walk", predict=True, m=1).

    With `predict`, the picture stays shut until a number is committed. `measured` is a plain dict with
    some of the keys that the simulator's `measures` names; the scene then shows it beside the model.
    """
    from widgets.registry import find
    from widgets.simulator import Simulator

    return Simulator(find(name), measured=measured, predict=predict, inputs=inputs)
