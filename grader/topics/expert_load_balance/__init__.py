"""What `expert_load_balance` asks: its questions and all that they are judged by."""
