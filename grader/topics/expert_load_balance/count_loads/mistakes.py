"""List the mistakes of *count loads*, a row each."""

from grader.questions.rows import in_cells

COUNT = """loads = np.bincount({pairs}, minlength={experts})
return {result}"""
RIGHT_COUNT = {
    "pairs": "topk_ids.reshape(-1)",
    "experts": "len(device_of)",
    "result": "loads, np.bincount(device_of, loads, devices)",
}


def count(**changed: str) -> str:
    return COUNT.format(**RIGHT_COUNT | changed)


MISTAKES = in_cells(
    "count_loads",
    "topk_ids, device_of, devices",
    {
        "experts alone": ("the loads of the devices are missing: return two arrays", count(result="loads")),
        "first choices alone": (
            "this counts only the first choice of each token: every entry of topk_ids is a token for an expert",
            count(pairs="topk_ids[:, 0]"),
        ),
        "too short": (
            "an expert that no token chose has a load of 0: tell np.bincount how many experts there are",
            "loads = np.bincount(topk_ids.reshape(-1))\nreturn loads, np.bincount(device_of[: len(loads)], loads, devices)",
        ),
        "one expert a device": (
            "held[device_of] += loads adds one expert of each device alone: np.add.at, or np.bincount with weights, adds all",
            "loads = np.bincount(topk_ids.reshape(-1), minlength=len(device_of))\nheld = np.zeros(devices)\nheld[device_of] += loads\nreturn loads, held",
        ),
        "experts counted": (
            "this is the number of experts on each device: weight each expert by its tokens",
            count(result="loads, np.bincount(device_of, minlength=devices)"),
        ),
        "as many devices as hold something": (
            "a device without an expert has a load of 0: tell np.bincount how many devices there are",
            count(result="loads, np.bincount(device_of, loads)"),
        ),
        "neighbours": (
            "device_of says where each expert is: experts with neighbouring numbers need not share a device",
            count(result="loads, loads.reshape(devices, -1).sum(1)"),
        ),
        "tokens once": (
            "a token with two experts on a device is two rows of work there, not one",
            count(
                result="loads, np.array([(device_of[topk_ids] == d).any(1).sum() for d in range(devices)])"
            ),
        ),
    },
)
