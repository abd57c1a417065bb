"""List right answers to *queue waits* in other forms."""

FORMS = {
    "sorted by arrival": "def queue_waits(arrivals, services):\n    waits, free = np.zeros(len(arrivals)), -np.inf\n    for i in np.argsort(arrivals, kind='stable'):\n        start = max(free, arrivals[i])\n        waits[i], free = start - arrivals[i], start + services[i]\n    return waits",
    "by Lindley": "def queue_waits(arrivals, services):\n    out = [0.0]\n    for gap, takes in zip(np.diff(arrivals), services):\n        out.append(max(0.0, out[-1] + takes - gap))\n    return out",
    "running maximum": "def queue_waits(arrivals, services):\n    before = np.cumsum(services) - services\n    return np.maximum.accumulate(arrivals - before) + before - arrivals",
}
