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
                ours=tuned,                # Factory: inputs -> call, where call() launches once and returns the output
                peers={"cuBLAS": cublas},  # name -> Factory
                check=check,               # (inputs, output) -> error, against the topic's reference
                tolerance=4e-3,            # the largest error that is still right
            )

A Factory's own work (packing weights, allocating the output, building descriptors) is paid once and not timed. The
returned call is captured in a CUDA graph and replayed, so it may not synchronise. It may return a tensor or anything
else that `check` understands. A peer that is not installed raises ImportError, and one that is absent for any other
reason raises Absent("why"). The run lists the peers that no row met. `spread` in kernels.compare chooses rows of a
case too large for float64. A peer whose answers may rightly differ from ours has `check_peer`.

A topic that is measured with another's kernels gets them as keywords of `rows`, from handed.py. One that has more to
measure than a single GPU can show may have `below(gpus)`, which returns a line under the table, or "".

One calibration a run serves all topics. It times the copy bandwidth and matrix rates that this GPU sustains as rows.
`state` is the GPU's state: "sustained" rows are timed after 0.3 s of their own load, when clocks have settled under
the power cap. Under --rested, each round starts after 1.2 idle seconds, as a first request finds the GPU.

With --joules each row also has what a call of ours and of the fastest peer costs in joules, replayed back to back
without a flush, by the driver's counter. --kept prints what results/ holds, without a GPU.

With --ladder the rows come from `kernels/<slug>/ladder/bench.py`, kernels on the way to the tuned one.

`mode` says which memory the kernel finds. "cold" flushes the L2, by reading, before every replay of one launch.
"rotate" replays many launches over copies of the inputs that fill four L2s or more, as a decode loop sees its weights.
`bytes` are the bytes that must move once (compulsory), `flops` the operations that must be computed. With the copy
bandwidth and the matrix rate of the calibration they give the limit, and a row's share of this limit.

Ours is checked before anything is timed, and again after. A wrong kernel gets no time. Peers are checked too. All
contenders of a row are timed in one loop in random, mirrored order (A B C C B A), so drift of clocks and heat affects
all alike. A ratio is the median over rounds, with its 99% interval.

Ours and the fastest peer are then timed again as a pair, without the other peers (`alone` in a record), because a GPU
under its power cap recovers while a slow peer runs. The table's last columns and the list of rows slower than a peer
come from that pair. reasons.json says why each such recorded row is slower, and what to try next.
"""
