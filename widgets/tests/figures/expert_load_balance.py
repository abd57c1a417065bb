"""The figures of expert_load_balance, as its simulators give them."""

from widgets.registry import find


def load(**inputs):
    simulator = find("device_load")
    return simulator.run(**simulator.inputs(inputs))


def ep_hot_expert():
    hot, even = load(), load(pattern="even")
    work = [sum(device.tokens for device in r.devices) for r in (hot, even)]
    assert work[0] == work[1]
    assert hot.busiest_tokens == max(device.tokens for device in hot.devices)
    assert hot.step_s / even.step_s > 2.5
    # without the exchange too: the time of the experts alone
    assert hot.devices[hot.busiest].experts_s / even.devices[even.busiest].experts_s > 2.5


FIGURES = {"ep_hot_expert": ep_hot_expert}
