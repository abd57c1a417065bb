"""Hold each topic's reference, its cost model, and its tuned kernel."""
