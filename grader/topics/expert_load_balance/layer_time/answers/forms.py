"""List right answers to *layer time* in other forms."""



FORMS = {
        "an array": "def layer_time(loads, device_of, devices, row_s, exchange_s):\n    held = np.zeros(devices)\n    np.add.at(held, device_of, loads)\n    m = held.max() / held.mean()\n    return np.array([m, held.max() * row_s + exchange_s, (m - 1) / m])",
    }
