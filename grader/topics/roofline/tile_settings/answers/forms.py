"""List right answers to *tile settings* in other forms."""



FORMS = (
{
        name: (
            (),
            [
                ("(p.M // 128, p.N // 256)", f"(p.M // {m}, p.N // {n})"),
                (
                    '"BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 64',
                    f'"BLOCK_M": {m}, "BLOCK_N": {n}, "BLOCK_K": {k}',
                ),
                ('"num_warps": 8, "num_stages": 3', f'"num_warps": {warps}, "num_stages": {stages}'),
            ],
        )
        for name, m, n, k, warps, stages in (
            ("a tall tile", 256, 128, 64, 8, 3),
            ("two stages", 128, 256, 64, 8, 2),
            ("one stage", 128, 256, 64, 8, 1),
            ("four stages", 128, 256, 64, 8, 4),
            ("short steps", 128, 256, 32, 8, 4),
            ("sixteen warps", 128, 256, 64, 16, 3),
        )
    }
)
