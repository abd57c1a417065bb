"""What runs within the compiler's box: IR text in, PTX and what ptxas says of it out. No answer's Python comes here."""
