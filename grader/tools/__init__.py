"""Help instructors and builders: the doctor, the gates, timings, progress, programs that no package brings."""
