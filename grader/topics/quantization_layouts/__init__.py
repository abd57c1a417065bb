"""What `quantization_layouts` asks: its questions and all that they are judged by."""
