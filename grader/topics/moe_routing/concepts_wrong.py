"""Wrong answers to the numpy questions, each a cell: the suites hand it in, and the report computes with it.

(sentence, the cell's body) by question and mistake; ENTRY holds what the body stands in.
"""

from grader.questions.cells import Cells

ENTRY = {
    "route": "x, router, k, softmax_first",
    "count": "chosen, experts, tile",
    "permute": "chosen, experts, tile",
    "experts": "rows, offsets, gate_up, down",
    "combine": "rows, place, weights",
    "tile_use": "loads, tile, factor",
    "layer_share": "events",
}

ROUTE = """logits = x @ router.T
chosen = {chosen}
first = {first}
s = logits if first else np.take_along_axis(logits, chosen, 1)
p = {powers}
p = p / p.sum({axis}, keepdims=True)
weights = np.take_along_axis(p, chosen, 1) if first else p
return chosen, {weights}"""
RIGHT_ROUTE = {
    "chosen": "np.argsort(-logits, axis=1, kind='stable')[:, :k]",
    "first": "softmax_first",
    "powers": "np.exp(s - s.max(1, keepdims=True))",
    "axis": "1",
    "weights": "weights",
}


def route(**changed: str) -> str:
    return ROUTE.format(**RIGHT_ROUTE | changed)


COUNT = """loads = {loads}
rows = {rows}
return loads, {offsets}"""
RIGHT_COUNT = {
    "loads": "np.bincount(chosen.ravel(), minlength=experts)",
    "rows": "-(-loads // tile) * tile",
    "offsets": "np.concatenate([[0], np.cumsum(rows)])",
}


def count(**changed: str) -> str:
    return COUNT.format(**RIGHT_COUNT | changed)


PERMUTE = """k = chosen.shape[1]
flat = {flat}
loads = np.bincount(flat, minlength=experts)
rows = {rows}
offsets = np.concatenate([[0], np.cumsum(rows)])
before = np.concatenate([[0], np.cumsum(loads)])
order = {order}
e = flat[order]
row = {start} + np.arange(len(flat)) - before[e]
picks = np.full(offsets[-1], {empty})
picks[row] = {stands}
place = np.empty(len(flat), int)
{placed}
return {first}, {second}"""
RIGHT_PERMUTE = {
    "flat": "chosen.ravel()",
    "rows": "-(-loads // tile) * tile",
    "order": "np.argsort(flat, kind='stable')",
    "start": "offsets[e]",
    "empty": "-1",
    "stands": "order",
    "placed": "place[order] = row",
    "first": "picks",
    "second": "place.reshape(chosen.shape)",
}


def permute(**changed: str) -> str:
    return PERMUTE.format(**RIGHT_PERMUTE | changed)


EXPERTS = """out = np.zeros((len(rows), down.shape[1]))
for e in range(len(down)):
    a, b = offsets[e], offsets[e + 1]
    w, d = {weights}
    both = rows[a:b] @ w.T
    g, u = {halves}
    out[a:b] = ({gated}) @ d.T
return out"""
RIGHT_EXPERTS = {
    "weights": "gate_up[e], down[e]",
    "halves": "np.split(both, 2, axis=1)",
    "gated": "g / (1 + np.exp(-g)) * u",
}


def experts(**changed: str) -> str:
    return EXPERTS.format(**RIGHT_EXPERTS | changed)


TILES = """limit = {limit}
kept = [min(n, limit) for n in loads]
tiles = {tiles}
slots = sum(tiles) * tile
return {padded}, {share}, {dropped}"""
RIGHT_TILES = {
    "limit": "math.inf if factor is None else math.ceil(factor * sum(loads) / len(loads))",
    "tiles": "[math.ceil(n / tile) for n in kept]",
    "padded": "slots - sum(kept)",
    "share": "sum(kept) / slots",
    "dropped": "sum(loads) - sum(kept)",
}


def tiles(**changed: str) -> str:
    return TILES.format(**RIGHT_TILES | changed)


SHARE = """step = {step}
layer = sum(us for name, start, us in events if {layer})
products = sum(us for name, start, us in events if name == 'moe.experts')
return {shares}"""
RIGHT_SHARE = {
    "step": "max(start + us for name, start, us in events) - min(start for name, start, us in events)",
    "layer": "name.startswith('moe.')",
    "shares": "layer / step, products / layer",
}


def share(**changed: str) -> str:
    return SHARE.format(**RIGHT_SHARE | changed)


TABLE = {
    "route": {
        "always over the chosen": (
            "with softmax_first the weights are shares of all experts: those of the chosen k do not add up to 1, and nothing divides them by their sum",
            route(first="False"),
        ),
        "always over all": (
            "without softmax_first the softmax is over the k chosen logits alone, so that the weights add up to 1",
            route(first="True"),
        ),
        "the smallest": (
            "the experts with the largest logits are chosen: sort by -logits",
            route(chosen="np.argsort(logits, axis=1, kind='stable')[:, :k]"),
        ),
        "best last": (
            "the best expert comes first; argsort puts the largest last, so sort by -logits",
            route(chosen="np.argsort(-logits, axis=1, kind='stable')[:, :k][:, ::-1]"),
        ),
        "by number": (
            "the chosen experts stand in the order of their logits, the best first, and not of their numbers",
            route(chosen="np.sort(np.argsort(-logits, axis=1, kind='stable')[:, :k], axis=1)"),
        ),
        "the higher of equals": (
            "of equal logits the expert with the lower number comes first: a sort turned round puts the higher first",
            route(chosen="np.argsort(logits, axis=1, kind='stable')[:, ::-1][:, :k]"),
        ),
        "the higher of equals, by a sort that keeps no order": (
            "of equal logits the expert with the lower number comes first: a sort turned round puts the higher first",
            route(chosen="np.argsort(logits, axis=1)[:, ::-1][:, :k]"),
        ),
        "in no order": (
            "equals, or all of the k largest, stand in any order: of np's ways to sort, np.argsort(-logits, kind='stable') alone keeps equals in theirs",
            route(chosen="np.argpartition(-logits, k - 1, axis=1)[:, :k]"),
        ),
        "no maximum": (
            "NaN for large logits: subtract each row's maximum before np.exp, which overflows from 710 on",
            route(powers="np.exp(s)"),
        ),
        "the maximum of all tokens": (
            "each row's own maximum is subtracted: beside the largest logit of all tokens a row far below it has nothing but powers of 0, and 0 / 0 is no number",
            route(powers="np.exp(s - s.max(initial=-np.inf))"),
        ),
        "by their powers": (
            "experts are chosen by their logits: far below the maximum np.exp gives 0 for each, and all of these look alike",
            route(
                chosen="np.argsort(-np.exp(logits - logits.max(1, keepdims=True)), axis=1, kind='stable')[:, :k]"
            ),
        ),
        "along the tokens": (
            "a softmax is taken along the experts of one token, axis 1, and not along the tokens",
            route(powers="np.exp(s - s.max(0, keepdims=True))", axis="0"),
        ),
        "the logits": (
            "these are the chosen logits themselves; the weights are a softmax of them",
            route(weights="np.take_along_axis(logits, chosen, 1)"),
        ),
    },
    "count": {
        "not padded": (
            "each expert's rows are padded to whole tiles before the next one begins: round each load up to a multiple of the tile",
            count(rows="loads"),
        ),
        "rounded down": ("a tile that is part full is a tile: round up", count(rows="loads // tile * tile")),
        "always one tile more": (
            "a load of whole tiles opens no further one: round up, ceil(load / tile), rather than add one",
            count(rows="np.where(loads, loads // tile + 1, 0) * tile"),
        ),
        "a tile for nobody": (
            "an expert without a pick has no tile: ceil(0 / tile) is 0",
            count(rows="np.maximum(1, -(-loads // tile)) * tile"),
        ),
        "the sum alone padded": (
            "each expert is padded by itself: the running sum is one of whole tiles",
            count(offsets="np.concatenate([[0], -(-np.cumsum(loads) // tile) * tile])"),
        ),
        "in tiles": ("offsets count rows, not tiles: times the tile", count(rows="-(-loads // tile)")),
        "no first 0": (
            "experts + 1 offsets are asked: 0 stands in front, where the first expert begins",
            count(offsets="np.cumsum(rows)"),
        ),
        "the first choice alone": (
            "all k picks of a token count, not its first choice alone",
            count(loads="np.bincount(chosen[:, 0], minlength=experts)"),
        ),
        "last experts left out": (
            "experts behind the last that was picked have a load too, 0: np.bincount takes minlength",
            count(loads="np.bincount(chosen.ravel())"),
        ),
    },
    "permute": {
        "tokens": (
            "a row holds the number of a pick, token * k + slot; this is the token alone",
            permute(stands="order // k"),
        ),
        "last first": (
            "within an expert the picks keep their order: here later ones stand first",
            permute(order="np.argsort(-flat, kind='stable')[::-1]"),
        ),
        "first choices first": (
            "picks are numbered token by token, token * k + slot; here all first choices come before all second ones",
            permute(
                order="np.argsort(chosen.T.ravel(), kind='stable') % max(1, len(chosen)) * k + np.argsort(chosen.T.ravel(), kind='stable') // max(1, len(chosen))"
            ),
        ),
        "padding of 0": (
            "padding belongs to nobody and is -1; 0 is a pick, the first of token 0",
            permute(empty="0"),
        ),
        "not padded": (
            "each expert's rows are padded to whole tiles before the next one begins",
            permute(rows="loads"),
        ),
        "padding first": (
            "an expert's padding stands behind its rows, not before them",
            permute(start="offsets[e + 1] - loads[e]"),
        ),
        "the list for the place": (
            "place is the other way round: not which pick stands in a row, but the row of each pick: place[order] = row",
            permute(placed="place[:] = order"),
        ),
        "row by row": (
            "the rows are in the order of the sorted list: put each at its pick, place[order] = row",
            permute(placed="place[:] = row"),
        ),
        "turned round": (
            "two tables are asked in this order, picks and then place: these are place and picks",
            permute(first="place.reshape(chosen.shape)", second="picks"),
        ),
        "rank in its expert": (
            "place counts rows from the start of all, so an expert's offset is part of it",
            permute(placed="place[order] = np.arange(len(flat)) - before[e]"),
        ),
    },
    "experts": {
        "up through SiLU": (
            "gate and up have changed places: gate, whose rows are the first half, goes through SiLU",
            experts(gated="g * u / (1 + np.exp(-u))"),
        ),
        "no SiLU": ("gate goes through SiLU before it is multiplied by up", experts(gated="g * u")),
        "a sigmoid": (
            "SiLU(g) is g times its sigmoid; this is the sigmoid alone",
            experts(gated="u / (1 + np.exp(-g))"),
        ),
        "powers of large gates": (
            "NaN for large gates: np.exp(g) overflows from 710 on, and infinity over infinity is no number; g / (1 + np.exp(-g)) is the same and does not",
            experts(gated="g * np.exp(g) / (1 + np.exp(g)) * u"),
        ),
        "SiLU of the product": (
            "SiLU is taken of the gate alone, before up is multiplied in",
            experts(gated="g * u / (1 + np.exp(-g * u))"),
        ),
        "ReLU": (
            "SiLU lets a little of what is below 0 through; this is ReLU",
            experts(gated="np.maximum(g, 0) * u"),
        ),
        "gate and up in turn": (
            "the rows of gate all stand above those of up: split gate_up[e] in the middle, it is not every other row",
            experts(halves="(both[:, ::2], both[:, 1::2])"),
        ),
        "the first expert for all": (
            "every expert has weights of its own: gate_up[e] and down[e]",
            experts(weights="gate_up[0], down[0]"),
        ),
        "down of the first": (
            "every expert has a down of its own: down[e]",
            experts(weights="gate_up[e], down[0]"),
        ),
    },
    "combine": {
        "no weights": ("each row counts by its weight", "return rows[place].sum(1)"),
        "a mean": ("the weights say how much of each row; this is the mean", "return rows[place].mean(1)"),
        "made to add up to 1": (
            "weights are taken as they are: those of softmax-then-top-k do not add up to 1",
            "w = weights / weights.sum(1, keepdims=True)\nreturn (rows[place] * w[:, :, None]).sum(1)",
        ),
        "rows as they lie": (
            "a token's rows do not lie beside each other: place says where each of them is",
            "tokens, k = place.shape\nreturn (rows[: tokens * k].reshape(tokens, k, -1) * weights[:, :, None]).sum(1)",
        ),
        "the last alone": (
            "each pick is added to what is there; here the last one overwrites the others",
            "return rows[place[:, -1]] * weights[:, -1:]",
        ),
        "made finite": (
            "an infinity or a NaN in a row that somebody waits for arrives at its token: padding is left out by not being read, not by np.nan_to_num",
            "return (np.nan_to_num(rows)[place] * weights[:, :, None]).sum(1)",
        ),
        "no weight, no row": (
            "0 times an infinity is NaN: a row counts also where its weight is 0",
            "return (np.where(weights[:, :, None] == 0, 0, rows[place]) * weights[:, :, None]).sum(1)",
        ),
        "padding counted": (
            "NaN where padding holds NaN: 0 times NaN is NaN, so rows that no place names may not be read",
            "m = np.zeros((len(place), len(rows)))\nnp.put_along_axis(m, place, weights, 1)\nreturn m @ rows",
        ),
    },
    "tile_use": {
        "no limit": (
            "with a factor an expert keeps ceil(factor * mean load) picks at most; the others are dropped",
            tiles(limit="math.inf"),
        ),
        "rounded down": (
            "the limit is rounded up: math.ceil",
            tiles(limit="math.inf if factor is None else math.floor(factor * sum(loads) / len(loads))"),
        ),
        "rounded to the nearest": (
            "the limit is rounded up, math.ceil, and not to the nearest",
            tiles(limit="math.inf if factor is None else round(factor * sum(loads) / len(loads))"),
        ),
        "the mean rounded": (
            "the mean load is no whole number: multiply it by the factor as it is and round up once, at the end",
            tiles(
                limit="math.inf if factor is None else math.ceil(factor * math.ceil(sum(loads) / len(loads)))"
            ),
        ),
        "the mean cut off": (
            "the mean load is no whole number: multiply it by the factor as it is and round up once, at the end",
            tiles(limit="math.inf if factor is None else math.ceil(factor * (sum(loads) // len(loads)))"),
        ),
        "a tile at least": (
            "the limit is ceil(factor * mean load) also where that is less than a tile",
            tiles(
                limit="math.inf if factor is None else max(tile, math.ceil(factor * sum(loads) / len(loads)))"
            ),
        ),
        "no limit of 1": (
            "a factor of 1 is a limit as well: there is none where factor is None",
            tiles(limit="math.ceil(factor * sum(loads) / len(loads)) if factor and factor > 1 else math.inf"),
        ),
        "the mean of who got any": (
            "the mean load is over all experts, those without a pick too",
            tiles(
                limit="math.inf if factor is None else math.ceil(factor * sum(loads) / sum(n > 0 for n in loads))"
            ),
        ),
        "all in one": (
            "a tile belongs to one expert: round each expert's rows up, not their sum",
            tiles(tiles="[math.ceil(sum(kept) / tile)]"),
        ),
        "a tile for nobody": (
            "an expert without a pick has no tile",
            tiles(tiles="[max(1, math.ceil(n / tile)) for n in kept]"),
        ),
        "always one tile more": (
            "a load of whole tiles opens no further one: round up rather than add one",
            tiles(tiles="[n // tile + (n > 0) for n in kept]"),
        ),
        "share of what came": (
            "a dropped pick is in no tile: the share is of the rows that are kept",
            tiles(share="sum(loads) / slots"),
        ),
        "mean of the experts": (
            "the share is one of all rows in all tiles, not a mean of each expert's",
            tiles(share="float(np.mean([n / (t * tile) if t else 1.0 for n, t in zip(kept, tiles)]))"),
        ),
        "drops as a share": ("picks are asked, not their share", tiles(dropped="1 - sum(kept) / sum(loads)")),
        "padding of what came": (
            "a limit comes before the tiles: pad what is kept, not all that came",
            tiles(padded="sum(math.ceil(n / tile) * tile for n in loads) - sum(loads)"),
        ),
        "drops for padding": (
            "padding is what tiles hold beyond the kept rows, not beyond all that came",
            tiles(padded="slots - sum(loads)"),
        ),
    },
    "layer_share": {
        "gaps left out": (
            "the step lasts from the first start to the last end: between two events nothing runs, and time goes on",
            share(step="sum(us for name, start, us in events)"),
        ),
        "from nought": (
            "the step begins where its first event does, and not at 0",
            share(step="max(start + us for name, start, us in events)"),
        ),
        "to the last start": (
            "the step ends where its last event ends, which is its start plus what it lasts",
            share(step="max(start for name, start, us in events) - min(start for name, start, us in events)"),
        ),
        "as they are listed": (
            "events need not be listed in the order of time: the first and the last are found by their starts and ends",
            share(step="events[-1][1] + events[-1][2] - events[0][1]"),
        ),
        "to the end of the last listed": (
            "events need not be listed in the order of time: the one that ends last may stand anywhere in the list",
            share(step="events[-1][1] + events[-1][2] - min(start for name, start, us in events)"),
        ),
        "to the end of who starts last": (
            "the step ends where the last event ends, and one that runs beside others may end after all that start later",
            share(
                step="max((start, start + us) for name, start, us in events)[1] - min(start for name, start, us in events)"
            ),
        ),
        "moe without its point": (
            "what belongs to the layer begins with moe. and its point: another name may begin with moe too",
            share(layer="name.startswith('moe')"),
        ),
        "whatever ends in experts": (
            "the products are the events named moe.experts, no others whose name ends alike",
            share().replace("name == 'moe.experts'", "name.endswith('experts')"),
        ),
        "whatever begins like experts": (
            "the products are the events named moe.experts, no others whose name begins alike",
            share().replace("name == 'moe.experts'", "name.startswith('moe.experts')"),
        ),
        "moe anywhere": (
            "what belongs to the layer begins with moe.: a name that has it further on is not the layer's",
            share(layer="'moe.' in name"),
        ),
        "experts alone": (
            "the layer is all that begins with moe., the router and the permutation with the rest",
            share(layer="name == 'moe.experts'"),
        ),
        "events counted": (
            "shares are of time; this counts events",
            "n = [name for name, start, us in events]\nlayer = sum(name.startswith('moe.') for name in n)\nreturn layer / len(n), n.count('moe.experts') / layer",
        ),
        "both of the step": (
            "the second share is of the layer, not of the step",
            share(shares="layer / step, products / step"),
        ),
    },
}

CELLS = Cells(ENTRY, TABLE)
MADE = CELLS.made("moe_routing")
