"""List right answers to *quantization error* in other forms."""



FORMS = {
        "by norms": "def quantization_error(w, c, s, z, g):\n    b = w.reshape(len(w), -1, g)\n    off = (c.reshape(b.shape) - z[..., None].astype(float)) * s[..., None].astype(float) - b\n    return np.linalg.norm(off) / np.linalg.norm(w), np.max(abs(off) / s[..., None].astype(float))",
        "an array": "def quantization_error(w, c, s, z, g):\n    i = np.arange(w.shape[1]) // g\n    t = s[:, i].astype(float)\n    off = (c.astype(int) - z[:, i].astype(int)) * t - w\n    return np.array([np.sqrt(np.mean(off * off)) / np.sqrt(np.mean(w * w)), (np.abs(off) / t).max()])",
    }
