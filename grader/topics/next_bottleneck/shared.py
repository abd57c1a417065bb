"""Share the lesson's folder among questions of the next bottleneck."""

LESSON = "course/07_next_bottleneck"
