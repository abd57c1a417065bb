"""What `flash_attention` asks: its questions and all that they are judged by."""
