"""What monarch_tensors_memory.py asks of GPUs: streams as callers name them, and memory that is given by DLPack, the host's too.

Nothing here reads such memory: where it lies is all that is asked. PyTorch is used where its tensors come from, and never imported.
"""

import ctypes
import operator
import sys

# DLPack's DLDeviceType: what is pinned is the host's.
HOST, CUDA, MANAGED, ROCM = 1, 2, 13, 10
HOSTS = frozenset((HOST, 3, 11))
CUDAS = frozenset((CUDA, MANAGED))
ROCM_WORDS = "it is in memory of a GPU by ROCm, and only that of CUDA's is published and pulled: give a copy in the host's"


# ---- Streams.


def stream_handle(stream):
    """The CUstream that a caller means: a number, or a stream of PyTorch, CuPy or cuda.core. Raises TypeError."""
    if hasattr(stream, "cuda_stream"):
        stream = stream.cuda_stream
    elif hasattr(stream, "__cuda_stream__"):
        stream = stream.__cuda_stream__()[1]
    elif hasattr(stream, "ptr"):
        stream = stream.ptr
    handle = operator.index(stream)
    if not 0 <= handle < 2 ** 64:
        raise TypeError("%d is no handle" % handle)
    return handle


class _Anywhere:
    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        return False


def on_stream(memory, stream):
    """A block whose copies by PyTorch are on that stream of the memory's GPU; None: on PyTorch's current one."""
    if stream is None or memory.device_type == HOST:
        return _Anywhere()
    cuda = sys.modules["torch"].cuda
    return cuda.stream(cuda.ExternalStream(stream, device=memory.device))


# ---- DLPack (dlpack.h).


class _Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device", ctypes.c_int32), ("dims", ctypes.c_int32),
                ("dtype_code", ctypes.c_uint8), ("dtype_bits", ctypes.c_uint8), ("dtype_lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class _Versioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
                ("flags", ctypes.c_uint64), ("tensor", _Tensor)]


_MAJOR = 1
_READ_ONLY, _COPIED = 1, 2
# The name of a capsule, and the one that it has when it was used. A capsule does not copy them: they stay.
_KINDS = ((ctypes.create_string_buffer(b"dltensor_versioned"), ctypes.create_string_buffer(b"used_dltensor_versioned"), _Versioned),
          (ctypes.create_string_buffer(b"dltensor"), ctypes.create_string_buffer(b"used_dltensor"), _Managed))


def _capsules(function, result):
    """Of CPython; by a prototype of one's own, since those of ctypes.pythonapi are everybody's."""
    return ctypes.PYFUNCTYPE(result, ctypes.py_object, ctypes.c_void_p)(("PyCapsule_" + function, ctypes.pythonapi))


class Exported:
    """Memory that an array gives by DLPack, and gets back at the end of this object.

    stream: for memory of a GPU the one that it is used on: it is ready for what is enqueued there next. None: it is the host's."""

    _at = None

    def __init__(self, array, stream):
        # 1 is the default stream, and 0 none that may be said.
        how = {} if stream is None else {"stream": stream or 1}
        try:
            capsule = array.__dlpack__(max_version=(_MAJOR, 0), **how)
        except TypeError:  # it is of before there were versions
            capsule = array.__dlpack__(**how)
        managed = self._take(capsule)
        tensor = managed.tensor
        self.is_read_only = isinstance(managed, _Versioned) and managed.flags & (_READ_ONLY | _COPIED) != 0
        self.dtype = (tensor.dtype_code, tensor.dtype_bits, tensor.dtype_lanes)
        self.shape = tuple(tensor.shape[:tensor.dims])
        self.strides = tuple(tensor.strides[:tensor.dims]) if tensor.strides else None  # in elements
        self.address = (tensor.data or 0) + tensor.byte_offset

    def _take(self, capsule):
        for name, used, kind in _KINDS:
            if _capsules("IsValid", ctypes.c_int)(capsule, ctypes.addressof(name)):
                break
        else:
            raise TypeError("__dlpack__() gave no capsule that can be used, but a %s" % type(capsule).__name__)
        self._at = _capsules("GetPointer", ctypes.c_void_p)(capsule, ctypes.addressof(name))
        managed = kind.from_address(self._at)
        self._deleter = managed.deleter
        # What has a newer layout may only be given back, and that is where it always was.
        _capsules("SetName", ctypes.c_int)(capsule, ctypes.addressof(used))
        if kind is _Versioned and managed.major > _MAJOR:
            raise TypeError("it has version %d of DLPack, and %d is known" % (managed.major, _MAJOR))
        return managed

    def __del__(self, deleters=ctypes.PYFUNCTYPE(None, ctypes.c_void_p)):
        if self._at is not None and self._deleter:
            deleters(self._deleter)(self._at)
