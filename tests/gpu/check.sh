#!/usr/bin/env bash
# What only a CUDA machine can show, on one with a single card, in under ten minutes:
#
#   card       torch sees a card, with the versions that follow from there
#   nccl       NCCL with one rank: a collective's span ends when the device is done with it, not when it was queued
#   events     an action's span is the device's time, by CUDA events, while the host had long gone on
#   training   a job on the card has the losses of one plain process on the CPU
#   sharing    four ranks on one card, over gloo: pipeline × data, the same losses, equal copies
#   memory     counters of the allocator stand beside what is alive, and never below it
#
# Prints a line for each, and exits with 0 if all are well, 1 if one is not, 2 if nothing could be checked.
# PYTHON says which Python to use; else it is .venv here, else a python3 whose torch sees a card, in a .venv made of it.
set -uo pipefail
cd "$(dirname "$0")/../.."

sees_card() { "$1" -c 'import torch; raise SystemExit(not torch.cuda.is_available())' 2>/dev/null; }

python=${PYTHON:-}
if [ -z "$python" ] && [ -x .venv/bin/python ]; then python=.venv/bin/python; fi
if [ -z "$python" ] && command -v python3 >/dev/null && sees_card python3; then
  echo "Setting up .venv around the torch of $(command -v python3)."
  python3 -m venv --system-site-packages .venv || exit 2
  # What ranks need beside torch; exact versions where the lock has them.
  grep -E '^(pydantic|pydantic-core|numpy|pyarrow|redis|packaging|scikit-learn|pytest|annotated-types|typing-inspection)==' \
    requirements.lock > .venv/gpu-requirements.txt
  .venv/bin/python -m pip install --quiet --disable-pip-version-check -r .venv/gpu-requirements.txt || exit 2
  python=.venv/bin/python
fi
if [ -z "$python" ]; then
  make setup || exit 2
  python=.venv/bin/python
fi

exec timeout 600 "$python" -m tests.gpu.checks
