"""Run within the compiler's box: IR text in, PTX and ptxas's report out. No answer's Python comes here."""
