"""List right answers to *replicated layer* in other forms."""



FORMS = {
        "turns by the token alone": [("copies[(t + comm.rank) % len(copies)]", "copies[t % len(copies)]")],
        "turns by expert": [
            ("    place = np.full", "    seen = np.full(len(holders), comm.rank)\n    place = np.full"),
            (
                "        place[t, j] = copies[(t + comm.rank) % len(copies)]",
                "        place[t, j] = copies[seen[topk_ids[t, j]] % len(copies)]\n        seen[topk_ids[t, j]] += 1",
            ),
        ],
    }
