"""Classes of links and how fast each is. Nothing here loads torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class LinkClass:
    """α and β of a link: a message of M bytes is there `latency_seconds` + M / `bytes_per_second` after it was sent."""

    word: str
    latency_seconds: float
    bytes_per_second: float

    def seconds(self, size_bytes: float) -> float:
        return self.latency_seconds + size_bytes / self.bytes_per_second


# Decimal units, as their makers count them and as one direction of a port: for NVLink and PCIe that is generous by two, since
# they count both directions of all links (NVIDIA H100 and Blackwell data sheets: 900 and 1,800 GB/s).
CLASSES: Mapping[str, LinkClass] = MappingProxyType({
    "nvlink-4": LinkClass("NVLink 4", 5e-6, 900e9),
    "nvlink-5": LinkClass("NVLink 5", 5e-6, 1800e9),
    "pcie-5": LinkClass("PCIe 5", 1e-6, 128e9),
    "pcie-6": LinkClass("PCIe 6", 1e-6, 256e9),
    "infiniband-ndr": LinkClass("InfiniBand NDR", 1e-6, 50e9),  # 400 Gb/s
    "infiniband-xdr": LinkClass("InfiniBand XDR", 1e-6, 100e9),
    "roce-v2": LinkClass("RoCE v2", 2e-6, 50e9),  # 1 to 3 µs
})

PACKET_BYTES = 4096  # InfiniBand's largest (its MTU)
NUMBER_BYTES = 8  # a float64

# What processes of one machine exchange over its loopback device, by gloo, from Python: about what
# `manage.py bench collectives` measures on a machine of two cores. Good for choosing, not for predicting.
LOOPBACK = LinkClass("loopback", 150e-6, 0.8e9)
