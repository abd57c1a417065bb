"""Check, then time every tuned kernel against the peers that are installed here.

    python -m kernels.bench [SLUG ...] [--json FILE] [--quick] [--ladder] [--rested] [--joules]
    python -m kernels.bench [SLUG ...] --kept

A topic takes part with a module `kernels/<slug>/bench.py` that has this function:

    def rows(device):                    # a torch.device
        for case in TIMED:
            yield Row(
                op="gemm", case="4096^3", dtype="bf16",
                flops=cost.flops(...), bytes=cost.compulsory_bytes(...),  # both from the topic's cost.py
                inputs=lambda seed: draw(case, seed, device),  # tensors (tuple, dict), new at each call
                ours=tuned,                # Factory: inputs -> call; call() launches once, returns the output
                peers={"cuBLAS": cublas},  # name -> Factory
                check=check,               # (inputs, output) -> error, against the topic's reference
                tolerance=4e-3,            # the largest error that is still right
            )

What a Factory does (packing weights, allocating the output, building descriptors) is paid once and not
timed; what the returned call does is captured in a CUDA graph and replayed, so it may not synchronise. It may
return a tensor or anything else that `check` understands. A peer that is not installed raises ImportError,
or Absent("why") for any other reason; the run lists those that no row met. `spread` in kernels.compare picks
rows of a case too large for float64. A peer whose answers may rightly differ from ours has `check_peer`.

A topic that is measured with another's kernels gets them as keywords of `rows`, from handed.py. One that has more to
measure than a single GPU can show may have `below(gpus)`: a line under the table, or "".

One calibration a run serves all topics: copy bandwidth and matrix rates that this GPU sustains, timed as rows are.
`state` is the GPU's state: "sustained" rows are timed after 0.3 s of their own load, when clocks have settled under
the power cap. With --rested, each round starts after 1.2 idle seconds, as a first request finds the GPU.

With --joules each row also has what a call of ours and of the fastest peer costs in joules, replayed back to back
without a flush, by the driver's counter. --kept prints what results/ holds, without a GPU.

With --ladder the rows come from `kernels/<slug>/ladder/bench.py`, kernels on the way to the tuned one.

`mode` says which memory the kernel finds: "cold" flushes the L2, by reading, before every replay of one
launch; "rotate" replays many launches over copies of the inputs, four L2s of them or more, as a decode loop
sees its weights.
`bytes` is what must move once (compulsory), `flops` what must be computed; with the copy bandwidth and the
matrix rate of the calibration they give the limit, and a row's share of it.

Ours is checked before anything is timed, and again after. A wrong kernel gets no time. Peers are checked too. All
contenders of a row are timed in one loop in random, mirrored order (A B C C B A), so drift of clocks and heat affects
all alike. A ratio is the median over rounds, with its 99% interval.

Ours and the fastest peer are then timed again with nobody between them (`alone` in a record), because a GPU under its
power cap recovers while a slow peer runs. The table's last columns and the rows behind a peer come from that pair.
reasons.json says of each recorded row behind a peer why, and what to try next.
"""
