"""List right answers to *suspect* in other forms."""

FORMS = {
    "a table": "def suspect(input_wait, launch_gap, skew, exposed, intensity, ridge, compute, bandwidth):\n    waits = ((input_wait, 0.1, 'input'), (launch_gap, 0.1, 'launches'), (skew, 1.05, 'stragglers'), (exposed, 0.1, 'communication'))\n    for value, limit, name in waits:\n        if value > limit:\n            return name\n    share = bandwidth if intensity < ridge else compute\n    if share < 0.7:\n        return 'implementation'\n    return 'memory' if intensity < ridge else 'compute'",
}
