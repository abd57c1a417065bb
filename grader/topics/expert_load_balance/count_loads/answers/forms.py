"""List right answers to *count loads* in other forms."""



FORMS = {
        "lists": "def count_loads(chosen, device_of, devices):\n    picks = [int(e) for row in chosen for e in row]\n    loads = [picks.count(e) for e in range(len(device_of))]\n    return loads, [sum(l for l, d in zip(loads, device_of) if d == one) for one in range(devices)]",
        "by comparison": "def count_loads(chosen, device_of, devices):\n    loads = (chosen[..., None] == np.arange(len(device_of))).sum((0, 1))\n    return loads, (device_of == np.arange(devices)[:, None]) @ loads",
    }
