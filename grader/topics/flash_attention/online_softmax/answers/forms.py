"""List right answers to *online softmax* in other forms."""



STATES = """
def online_softmax(tiles):
    m, total, states = float("-inf"), 0.0, []
    for tile in tiles:
        new = max(m, max(tile))
        factor = math.exp(m - new)
        total = total * factor + sum(math.exp(s - new) for s in tile)
        m = new
        states.append({state})
    return {states}
"""
FORMS = {
        "tuples in a tuple": "import math\n"
        + STATES.format(state="(m, factor, total)", states="tuple(states)"),
        "lists in a list": "import math\n" + STATES.format(state="[m, factor, total]", states="states"),
        "an array": "import math\n" + STATES.format(state="(m, factor, total)", states="np.array(states)"),
        "row arrays in a list": "import math\n"
        + STATES.format(state="np.array([m, factor, total])", states="states"),
    }
