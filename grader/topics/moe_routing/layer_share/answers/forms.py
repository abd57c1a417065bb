"""List right answers to *layer share* in other forms."""



FORMS = {
        "in numpy": "def layer_share(events):\n    names, starts, us = zip(*events)\n    names, starts, us = np.array(names), np.array(starts), np.array(us)\n    mine = np.char.startswith(names, 'moe.')\n    return us[mine].sum() / np.ptp(np.concatenate([starts, starts + us])), us[names == 'moe.experts'].sum() / us[mine].sum()",
    }
