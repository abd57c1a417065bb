"""What an instructor and a builder use: the doctor, the gates, timings, progress, programs that no package brings."""
