"""List right answers to *hot slowdown* in other forms."""



FORMS = {
        "device by device": "def hot_slowdown(top_k, experts, devices, hot_share):\n    loads = np.full(experts, (top_k - hot_share) / (experts - 1))\n    loads[0] = hot_share\n    held = loads.reshape(devices, -1).sum(1)\n    return held.max() / held.mean()",
    }
