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
            "these are neighbours on one device, whatever their loads",
            "return np.arange(len(loads)) * devices // len(loads)",
        ),
        "dealt": (
            "these are experts dealt like cards, whatever their loads",
            "return np.arange(len(loads)) % devices",
        ),
        "lightest first": (
            "the lightest come first here, and the heavy ones find no gap: begin with the heaviest",
            place(order="np.argsort(loads, kind='stable')"),
        ),
        "heaviest dealt": (
            "the heaviest of each round meet on one device: give each to the device with the fewest tokens so far",
            place(key="(count[d], d)"),
        ),
        "to the busiest": (
            "devices fill up one after the other: each expert goes to the one with the fewest tokens so far, and these grow with every expert that it gets",
            place(key="(-held[d], d)"),
        ),
        "no slots": (
            "a device has len(loads) / devices slots: one that is full takes no more",
            place(room="True"),
        ),
    },
)
