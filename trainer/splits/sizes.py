"""What splits take beside activations themselves, for those who run them and those who plan. No torch here."""

STAMP_BYTES = 8  # in front of every message between stages: when it was sent
RECEIVES_AHEAD = 4  # enough that a neighbour finds room for what it sends, few enough to bound memory
