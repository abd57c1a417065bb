"""The jail: where a student's Python runs. It is told sizes and never sees a tensor of a kernel question."""
