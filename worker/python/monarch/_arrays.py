"""Arrays of numpy and tensors of torch as bytes, and back. Neither is imported here before a value of it is there.

Thread: any; there is no state but which types torch has, once it is imported.
"""

import sys


class NoBytes(TypeError):
    """An array that is no plain memory of this machine."""


def torch_if_there():
    """torch, where the program has imported it, to the end."""
    torch = sys.modules.get("torch")
    return torch if torch is not None and hasattr(torch, "Tensor") and hasattr(torch, "frombuffer") else None


def numpy_if_there():
    numpy = sys.modules.get("numpy")
    return numpy if numpy is not None and hasattr(numpy, "ndarray") else None


# ---- tensors


def is_plain_tensor(torch, tensor):
    """Elements in memory that is addressed by strides; of any device that has memory."""
    return tensor.layout is torch.strided and not tensor.is_quantized and tensor.device.type != "meta" and not tensor.is_nested


def tensor_parts(torch, tensor):
    """(name of the dtype, sizes, strides, its memory as bytes) of a plain tensor. The memory is the tensor's own wherever
    that has no gaps; it is kept as long as the bytes are."""
    tensor = tensor.detach()
    if tensor.device.type != "cpu":
        tensor = tensor.cpu()
    if tensor.is_conj():
        tensor = tensor.resolve_conj()
    if tensor.is_neg():
        tensor = tensor.resolve_neg()
    elements = _span(tensor.shape, tensor.stride())
    if elements > tensor.numel():
        tensor = tensor.contiguous()
        elements = tensor.numel()
    return str(tensor.dtype)[6:], tuple(tensor.shape), tuple(tensor.stride()), _memory_of(tensor, elements * tensor.element_size())


def _span(sizes, strides):
    """How many elements lie from the first to the last one."""
    if 0 in sizes:
        return 0
    return 1 + sum((size - 1) * stride for size, stride in zip(sizes, strides))


def _memory_of(tensor, size):
    if size == 0:
        return b""
    import ctypes  # which torch has imported

    class Memory(ctypes.c_ubyte * size):
        pass

    memory = Memory.from_address(tensor.data_ptr())
    memory.of = tensor
    return memory


def dtype_of(torch, name):
    dtype = getattr(torch, name, None) if isinstance(name, str) else None
    if not isinstance(dtype, torch.dtype):
        raise ValueError("torch here has no dtype %r" % (name,))
    return dtype


def tensor_of(name, sizes, strides, data, requires_grad=False, device=None):
    """A tensor over these bytes, which may be written; it keeps them. Elements of any dtype are read as bytes first: not all
    can be read as what they are."""
    import torch
    dtype = dtype_of(torch, name)
    width = dtype.itemsize if hasattr(dtype, "itemsize") else torch.empty(0, dtype=dtype).element_size()
    if min(sizes, default=0) < 0 or min(strides, default=0) < 0 or _span(sizes, strides) * width > len(data):
        raise ValueError("a tensor of %d bytes is said to have sizes %s and strides %s" % (len(data), list(sizes), list(strides)))
    if len(data) == 0:
        tensor = torch.empty_strided(tuple(sizes), tuple(strides), dtype=dtype)
    else:
        tensor = torch.frombuffer(data, dtype=torch.uint8).view(dtype).as_strided(tuple(sizes), tuple(strides))
    if device is not None:
        tensor = tensor.to(device)
    return tensor.requires_grad_() if requires_grad else tensor


# ---- arrays

_KINDS = "biufcSUmM"  # what is of bytes alone


def array_parts(numpy, array):
    """(dtype, sizes, bytes) of an array, in rows."""
    if array.dtype.kind not in _KINDS:
        raise NoBytes("an array of %s" % ("objects" if array.dtype.kind == "O" else array.dtype))
    data = numpy.ascontiguousarray(array)
    # A reading of times is none of memory, so all are read as bytes.
    return array.dtype.str, array.shape, memoryview(data.reshape(-1).view(numpy.uint8)) if data.nbytes else b""


def array_of(dtype, sizes, data):
    """An array over a copy of these bytes."""
    import numpy
    kind = numpy.dtype(dtype)
    if kind.kind not in _KINDS:
        raise ValueError("an array of %s" % kind)
    return numpy.frombuffer(bytearray(data), kind).reshape(sizes)
