"""Run a student's Python in the jail. It learns sizes and never sees a tensor of a kernel question."""
