"""What each topic computes, what it costs, and its tuned kernel."""
