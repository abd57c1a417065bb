"""List right answers to *combine* in other forms."""



FORMS = {
        "einsum": "def combine(rows, inv_permuted_idx, topk_weights):\n    return np.einsum('tkh,tk->th', rows[inv_permuted_idx], topk_weights)",
        "slot by slot": "def combine(rows, inv_permuted_idx, topk_weights):\n    out = np.zeros((len(inv_permuted_idx), rows.shape[1]))\n    for j in range(inv_permuted_idx.shape[1]):\n        out += topk_weights[:, j : j + 1] * rows[inv_permuted_idx[:, j]]\n    return out",
    }
