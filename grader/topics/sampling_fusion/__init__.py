"""What `sampling_fusion` asks: its questions and all that they are judged by."""
