"""List the mistakes of *place experts*, a row each."""

from grader.questions.rows import in_cells

PLACE = """slots = len(loads) // devices
held, count, device_of = [0.0] * devices, [0] * devices, np.zeros(len(loads), int)
for e in {order}:
    free = [d for d in range(devices) if {room}]
    d = min(free, key=lambda d: {key})
    held[d] += loads[e]
    count[d] += 1
    device_of[e] = d
return device_of"""
RIGHT_PLACE = {
    "order": "np.argsort(-loads, kind='stable')",
    "room": "count[d] < slots",
    "key": "(held[d], d)",
}


def place(**changed: str) -> str:
    return PLACE.format(**RIGHT_PLACE | changed)


MISTAKES = in_cells(
    "place_experts",
    "loads, devices",
    {
        "by number": (
            "this puts neighbouring experts on one device, whatever their loads",
            "return np.arange(len(loads)) * devices // len(loads)",
        ),
        "dealt": (
            "this deals the experts out like cards, whatever their loads",
            "return np.arange(len(loads)) % devices",
        ),
        "lightest first": (
            "here the lightest come first, so the heavy ones find no gap: begin with the heaviest",
            place(order="np.argsort(loads, kind='stable')"),
        ),
        "heaviest dealt": (
            "the heaviest expert of each round goes to the same device: give each expert to the device with the fewest tokens so far",
            place(key="(count[d], d)"),
        ),
        "to the busiest": (
            "devices fill up one after another: give each expert to the device with the fewest tokens so far, and count the expert's tokens there",
            place(key="(-held[d], d)"),
        ),
        "no slots": (
            "a device has len(loads) / devices slots: a full device takes no more experts",
            place(room="True"),
        ),
    },
)
