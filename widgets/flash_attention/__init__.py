"""The simulators of this topic, in the order in which they are met."""

ORDER = ("online_softmax", "attention_state")
