"""List right answers to *copies of* in other forms."""



FORMS = {
        "a heap": "import heapq\n\n\ndef copies_of(loads, devices, spare):\n    heap = [(-v, e, 1) for e, v in enumerate(loads)]\n    heapq.heapify(heap)\n    copies = [1] * len(loads)\n    while spare and heap:\n        _, e, n = heapq.heappop(heap)\n        if n < devices:\n            copies[e], spare = n + 1, spare - 1\n            heapq.heappush(heap, (-loads[e] / (n + 1), e, n + 1))\n    return tuple(copies), max(v / n for v, n in zip(loads, copies))",
    }
