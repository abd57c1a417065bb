"""What `moe_routing` asks: its questions and all that they are judged by."""
