"""What each of the dispatcher's operators `c10d::*` asks for: which collective, of which tensors, combined how.

All that differs between the operators is how they pack their tensors. A Request unpacks them, and carries the
collective out by whatever plan it is given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from trainer.collectives.exchange import Combine
from trainer.collectives.memory import Crossed, Flat, Memory

Go = Callable[[Memory, Combine], None]  # one collective over this memory, by the plan that was chosen


@dataclass(frozen=True)
class Request:
    """`carry_out` needs somebody to run the plan; `result` is what a work's future gives."""

    collective: str
    size_bytes: int  # of the whole array, as nccl-tests counts it
    carry_out: Callable[[Go], None]
    result: list[Tensor]
    root: int = 0
    uneven: bool = False  # chunks may be of several sizes, and only their two ends know them


def request_of(operator: str, arguments: dict[str, Any], place: int, ranks: int) -> Request | None:
    """None for what our algorithms do not do: sparse and complex tensors, a factor before the sum, gathers to one rank."""
    if operator not in _REQUESTS or arguments.get("sparse_indices") is not None:
        return None
    tensors = [tensor for value in arguments.values() for tensor in _tensors(value)]
    if any(tensor.is_sparse or tensor.is_complex() or tensor.device.type != "cpu" for tensor in tensors):
        return None
    if "reduce_op" in arguments and not _can_reduce(arguments["reduce_op"].op(), tensors):
        return None
    return _REQUESTS[operator](arguments, place, ranks)


def _min(mine: Tensor, theirs: Tensor) -> None:
    torch.minimum(mine, theirs, out=mine)


def _max(mine: Tensor, theirs: Tensor) -> None:
    torch.maximum(mine, theirs, out=mine)


_OP: Any = dist.ReduceOp.RedOpType
_COMBINE: dict[int, Combine] = {
    _OP.SUM.value: Tensor.add_, _OP.AVG.value: Tensor.add_, _OP.PRODUCT.value: Tensor.mul_,
    _OP.MIN.value: _min, _OP.MAX.value: _max,
    _OP.BAND.value: Tensor.bitwise_and_, _OP.BOR.value: Tensor.bitwise_or_, _OP.BXOR.value: Tensor.bitwise_xor_,
}
_BITWISE = (_OP.BAND.value, _OP.BOR.value, _OP.BXOR.value)


def _can_reduce(operation: int, tensors: list[Tensor]) -> bool:
    def fits(tensor: Tensor) -> bool:
        if operation == _OP.AVG.value:
            return tensor.is_floating_point()
        return tensor.dtype != torch.bool and not (operation in _BITWISE and tensor.is_floating_point())

    return operation in _COMBINE and all(map(fits, tensors))


def _all_reduce(arguments: dict[str, Any], place: int, ranks: int) -> Request:
    tensors: list[Tensor] = arguments["tensors"]
    combine, divide = _reduction(arguments, ranks)

    def carry_out(go: Go) -> None:
        flat = _flat(tensors)
        go(Flat(flat, ranks), combine)
        divide(flat)
        _put_back(flat, tensors)

    return Request("all_reduce", _bytes(tensors), carry_out, tensors)


def _reduce(arguments: dict[str, Any], place: int, ranks: int) -> Request:
    tensors, root = arguments["tensors"], int(arguments["root_rank"])
    combine, divide = _reduction(arguments, ranks)

    def carry_out(go: Go) -> None:
        flat = _flat(tensors)
        if place != root:  # what it has is its own and stays so
            go(Flat(flat.clone(), ranks), combine)
            return
        go(Flat(flat, ranks), combine)
        divide(flat)
        _put_back(flat, tensors)

    return Request("reduce", _bytes(tensors), carry_out, tensors, root)


def _broadcast(arguments: dict[str, Any], place: int, ranks: int) -> Request:
    tensors = arguments["tensors"]

    def carry_out(go: Go) -> None:
        flat = _flat(tensors)
        go(Flat(flat, ranks), _unused)
        _put_back(flat, tensors)

    return Request("broadcast", _bytes(tensors), carry_out, tensors, int(arguments["root_rank"]))


def _all_gather(pairs: list[tuple[list[Tensor], Tensor]], result: list[Tensor], place: int, ranks: int) -> Request:
    """Of each pair, every rank's input one behind the other in the outputs: one tensor, or one for each rank."""
    def carry_out(go: Go) -> None:
        for outputs, mine in pairs:
            direct = len(outputs) == 1 and outputs[0].is_contiguous()
            flat = outputs[0].view(-1) if direct else mine.new_empty(ranks * mine.numel())
            flat[place * mine.numel():(place + 1) * mine.numel()].copy_(mine.reshape(-1))
            go(Flat(flat, ranks), _unused)
            if not direct:
                _put_back(flat, outputs)

    return Request("all_gather", ranks * sum(mine.nbytes for _, mine in pairs), carry_out, result)


def _reduce_scatter(pairs: list[tuple[Tensor, list[Tensor]]], arguments: dict[str, Any], place: int, ranks: int) -> Request:
    """Of each pair, the sum of all ranks' inputs, cut into a piece for each rank; inputs: one tensor, or one for each rank."""
    combine, divide = _reduction(arguments, ranks)

    def carry_out(go: Go) -> None:
        for output, inputs in pairs:
            work = torch.cat([part.reshape(-1) for part in inputs])  # a new one: inputs stay what they are
            go(Flat(work, ranks), combine)
            mine = work[place * output.numel():(place + 1) * output.numel()]
            divide(mine)
            output.copy_(mine.view(output.shape))

    outputs = [output for output, _ in pairs]
    return Request("reduce_scatter", ranks * _bytes(outputs), carry_out, outputs)


def _all_to_all(inputs: Sequence[Tensor], outputs: Sequence[Tensor], result: list[Tensor], place: int, uneven: bool) -> Request:
    """`inputs[i]` goes to rank i, `outputs[i]` comes from there."""
    def carry_out(go: Go) -> None:
        sent = [part.reshape(-1) for part in inputs]
        got = [part.view(-1) if part.is_contiguous() else part.new_empty(part.numel()) for part in outputs]
        got[place].copy_(sent[place])
        go(Crossed(sent, got, place), _unused)
        for part, flat in zip(outputs, got, strict=True):
            if not part.is_contiguous():
                part.copy_(flat.view(part.shape))

    return Request("all_to_all", _bytes(inputs), carry_out, result, uneven=uneven)


def _all_to_all_single(arguments: dict[str, Any], place: int, ranks: int) -> Request:
    output, given = arguments["output"], arguments["input"]
    sizes_in, sizes_out = arguments["input_split_sizes"], arguments["output_split_sizes"]

    def parts(tensor: Tensor, sizes: list[int]) -> Sequence[Tensor]:
        return tensor.split(list(sizes) if sizes else [tensor.shape[0] // ranks] * ranks)

    return _all_to_all(parts(given, sizes_in), parts(output, sizes_out), [output], place, uneven=bool(sizes_in or sizes_out))


def _barrier(arguments: dict[str, Any], place: int, ranks: int) -> Request:
    token = torch.zeros(1, dtype=torch.uint8)
    return Request("barrier", 0, lambda go: go(Flat(token, ranks), Tensor.bitwise_or_), [token])


_REQUESTS: dict[str, Callable[[dict[str, Any], int, int], Request]] = {
    "allreduce_": _all_reduce,
    "allreduce_coalesced_": _all_reduce,
    "allgather_": lambda a, place, ranks: _all_gather(
        list(zip(a["output_tensors"], a["input_tensors"], strict=True)), a["output_tensors"][0], place, ranks),
    "_allgather_base_": lambda a, place, ranks: _all_gather(
        [([a["output_tensor"]], a["input_tensor"])], [a["output_tensor"]], place, ranks),
    "allgather_coalesced_": lambda a, place, ranks: _all_gather(
        [([of_rank[at] for of_rank in a["output_lists"]], given) for at, given in enumerate(a["input_list"])],
        a["output_lists"][0], place, ranks),
    "allgather_into_tensor_coalesced_": lambda a, place, ranks: _all_gather(
        [([output], given) for output, given in zip(a["outputs"], a["inputs"], strict=True)], a["outputs"], place, ranks),
    "reduce_scatter_": lambda a, place, ranks: _reduce_scatter(
        list(zip(a["output_tensors"], a["input_tensors"], strict=True)), a, place, ranks),
    "_reduce_scatter_base_": lambda a, place, ranks: _reduce_scatter(
        [(a["output_tensor"], [a["input_tensor"]])], a, place, ranks),
    "reduce_scatter_tensor_coalesced_": lambda a, place, ranks: _reduce_scatter(
        [(output, [given]) for output, given in zip(a["outputs"], a["inputs"], strict=True)], a, place, ranks),
    "alltoall_": lambda a, place, ranks: _all_to_all(
        a["input_tensors"], a["output_tensors"], a["output_tensors"], place, uneven=True),
    "alltoall_base_": _all_to_all_single,
    "broadcast_": _broadcast,
    "reduce_": _reduce,
    "barrier": _barrier,
}


def _reduction(arguments: dict[str, Any], ranks: int) -> tuple[Combine, Callable[[Tensor], object]]:
    """How two contributions become one, and what is left to do with the last."""
    operation = arguments["reduce_op"].op()
    if operation == _OP.AVG.value:
        return _COMBINE[operation], lambda total: total.div_(ranks)
    return _COMBINE[operation], lambda total: total


def _unused(mine: Tensor, theirs: Tensor) -> None:
    raise AssertionError("this collective combines nothing")


def _bytes(tensors: Sequence[Tensor]) -> int:
    return sum(tensor.nbytes for tensor in tensors)


def _flat(tensors: Sequence[Tensor]) -> Tensor:
    """The only one itself if it lies in one piece, else a copy of all."""
    if len(tensors) == 1 and tensors[0].is_contiguous():
        return tensors[0].detach().view(-1)
    return torch.cat([tensor.detach().reshape(-1) for tensor in tensors])


def _put_back(flat: Tensor, tensors: Sequence[Tensor]) -> None:
    if len(tensors) == 1 and tensors[0].is_contiguous():
        return
    for tensor, part in zip(tensors, flat.split([tensor.numel() for tensor in tensors]), strict=True):
        tensor.copy_(part.view(tensor.shape))


def _tensors(given: Any) -> list[Tensor]:
    if isinstance(given, Tensor):
        return [given]
    return [tensor for item in given for tensor in _tensors(item)] if isinstance(given, (list, tuple)) else []
