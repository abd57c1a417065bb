"""The simulators: pure models, their scenes, and one shared view."""
