"""List right answers to *place experts* in other forms."""



FORMS = {
        "a list": "def place_experts(loads, devices):\n    held, slots = [0.0] * devices, [len(loads) // devices] * devices\n    out = [0] * len(loads)\n    for e in sorted(range(len(loads)), key=lambda e: -loads[e]):\n        d = min((d for d in range(devices) if slots[d]), key=lambda d: held[d])\n        held[d] += loads[e]\n        slots[d] -= 1\n        out[e] = d\n    return out",
        "the last of equals, and floats": "def place_experts(loads, devices):\n    held, count, out = np.zeros(devices), np.zeros(devices), np.zeros(len(loads))\n    for e in np.argsort(loads)[::-1]:\n        free = np.where(count < len(loads) // devices, held, np.inf)\n        d = devices - 1 - free[::-1].argmin()\n        held[d] += loads[e]\n        count[d] += 1\n        out[e] = d\n    return out",
        "greedy, then swaps": "def place_experts(loads, devices):\n    per, n = len(loads) // devices, len(loads)\n    held, count, at = np.zeros(devices), np.zeros(devices, int), np.zeros(n, int)\n    for e in np.argsort(-loads):\n        d = min((d for d in range(devices) if count[d] < per), key=lambda d: held[d])\n        held[d], count[d], at[e] = held[d] + loads[e], count[d] + 1, d\n    for _ in range(50):\n        top = held.argmax()\n        tries = [(max(held[top] - loads[a] + loads[b], held[at[b]] - loads[b] + loads[a]), a, b) for a in np.flatnonzero(at == top) for b in np.flatnonzero(at != top)]\n        best, a, b = min(tries)\n        if best >= held.max():\n            break\n        held[at[a]] += loads[b] - loads[a]\n        held[at[b]] += loads[a] - loads[b]\n        at[a], at[b] = at[b], at[a]\n    return at",
    }
