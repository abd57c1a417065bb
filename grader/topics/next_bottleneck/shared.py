"""What several questions of the next bottleneck share: the lesson's folder."""

LESSON = "course/07_next_bottleneck"
