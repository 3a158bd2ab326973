"""monarch.rdma: there is none here, and who asks first has other ways."""

from ._errors import unbuilt

_INSTEAD = "tensors are published and pulled by monarch_tensors: monarch-tensors(7)"


def is_rdma_available():
    return False


def is_ibverbs_available():
    return False


class RDMABuffer:
    def __init__(self, *_args, **_kwargs):
        unbuilt("RDMABuffer", _INSTEAD)


class RDMAAction:
    def __init__(self, *_args, **_kwargs):
        unbuilt("RDMAAction", _INSTEAD)


__all__ = ["RDMAAction", "RDMABuffer", "is_ibverbs_available", "is_rdma_available"]
