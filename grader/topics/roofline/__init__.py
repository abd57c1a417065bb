"""What `roofline` asks: its questions and all that they are judged by."""
