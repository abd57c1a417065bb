"""List right answers to *count loads* in other forms."""



FORMS = {
        "lists": "def count_loads(topk_ids, device_of, devices):\n    pairs = [int(e) for row in topk_ids for e in row]\n    loads = [pairs.count(e) for e in range(len(device_of))]\n    return loads, [sum(l for l, d in zip(loads, device_of) if d == one) for one in range(devices)]",
        "by comparison": "def count_loads(topk_ids, device_of, devices):\n    loads = (topk_ids[..., None] == np.arange(len(device_of))).sum((0, 1))\n    return loads, (device_of == np.arange(devices)[:, None]) @ loads",
    }
