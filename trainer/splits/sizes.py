"""What splits take beside activations themselves, for those who run them and those who plan. No torch here."""

STAMP_BYTES = 16  # in front of every message between stages, two numbers: when it was sent, when it arrives
RECEIVES_AHEAD = 4  # enough that a neighbour finds room for what it sends, few enough to bound memory
