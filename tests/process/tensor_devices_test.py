"""What monarch_tensors takes of GPUs, and what it keeps until copies from them have ended: with a library that notes what it is told, and
arrays whose memory nobody may read."""

import ctypes
import gc
import sys
import types
import unittest
import weakref

import harness
import tensor_memory_test as memory_test
from tensor_memory_test import Named, Storage, Tensor, tensors

NOWHERE = 0x7000  # who reads there ends
DEVICES = tensors._devices


class Gpu:
    """As torch.device of a GPU."""

    type = "cuda"

    def __init__(self, index):
        self.index = index

    def __str__(self):
        return f"cuda:{self.index}"


class OfGpu(Storage):
    def __init__(self, bytes_):
        super().__init__(1)
        self.bytes = bytes_

    def nbytes(self):
        return self.bytes


class CudaTensor(Tensor):
    """As PyTorch's on a GPU."""

    def __init__(self, *shape, gpu=1, **facts):
        super().__init__(*shape, storage=OfGpu(4 << 10), **facts)
        self.device = Gpu(gpu)

    def data_ptr(self):
        return NOWHERE

    def contiguous(self):
        sys.modules["torch"].made.append(("contiguous", sys.modules["torch"].cuda.entered))
        return CudaTensor(*self.shape)

    def to(self, dtype):
        sys.modules["torch"].made.append((str(dtype), sys.modules["torch"].cuda.entered))
        return CudaTensor(*self.shape, dtype=dtype, element_size=lambda: 2)


class FakeCuda:
    """torch.cuda: the current stream of each GPU is another one."""

    entered = None

    def current_stream(self, device):
        return types.SimpleNamespace(cuda_stream=0x100 + device.index)

    def ExternalStream(self, stream, device):  # noqa: N802
        return stream, device

    def stream(self, stream):
        cuda = self

        class Block:
            def __enter__(self):
                cuda.entered = stream

            def __exit__(self, *error):
                cuda.entered = None
        return Block()


class OfCuda:
    """What has __cuda_array_interface__ alone."""

    def __init__(self, typestr="<f4", **interface):
        self.__cuda_array_interface__ = {"typestr": typestr, "shape": (2, 3), "data": (NOWHERE, False), "version": 3, **interface}


class Shaped(ctypes.Structure):
    _fields_ = [("extents", ctypes.c_int64 * 4), ("strides", ctypes.c_int64 * 4)]


class Packed:
    """What has __dlpack__ alone, and counts what it got back. The capsules are as dlpack.h says, of before there were versions or not."""

    def __init__(self, data=NOWHERE, shape=(2, 3), strides=None, dtype=(2, 32, 1), device=(2, 1), major=1, flags=0, offset=0):
        self.asked, self.back = [], []
        self.device, self.major = device, major
        self.shaped = Shaped((ctypes.c_int64 * 4)(*shape), (ctypes.c_int64 * 4)(*strides or ()))
        at = ctypes.addressof(self.shaped)
        self.deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.back.append)
        deleter = ctypes.cast(self.deleter, ctypes.c_void_p)
        self.managed = DEVICES._Managed() if major is None else DEVICES._Versioned(major=major, minor=0, flags=flags)
        self.managed.deleter = deleter
        tensor = self.managed.tensor
        tensor.data, tensor.device_type, tensor.device, tensor.dims, tensor.byte_offset = data, *device, len(shape), offset
        tensor.dtype_code, tensor.dtype_bits, tensor.dtype_lanes = dtype
        tensor.shape = ctypes.cast(at, ctypes.POINTER(ctypes.c_int64))
        if strides is not None:
            tensor.strides = ctypes.cast(at + 32, ctypes.POINTER(ctypes.c_int64))
        self.name = ctypes.create_string_buffer(b"dltensor" if major is None else b"dltensor_versioned")

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **how):
        if self.major is None and "max_version" in how:
            raise TypeError("unexpected keyword argument 'max_version'")
        self.asked.append(how)
        make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
        return make(("PyCapsule_New", ctypes.pythonapi))(ctypes.addressof(self.managed), ctypes.addressof(self.name), None)


class DevicesTest(memory_test.MemoryTest):
    def setUp(self):
        super().setUp()
        torch = types.SimpleNamespace(cuda=FakeCuda(), version=types.SimpleNamespace(hip=None), made=[], __version__="2.9",
                                      bfloat16=Named("torch.bfloat16"))
        before = sys.modules.get("torch")
        sys.modules["torch"] = torch
        self.addCleanup(lambda: sys.modules.pop("torch") if before is None else sys.modules.update(torch=before))
        self.torch = torch

    def put(self, array, **how):
        """(device type, GPU, stream) that the library was told."""
        self.version.put("w", array, **how)
        return self.library.on


class Streams(DevicesTest):
    def test_a_tensor_of_pytorch_is_ready_on_its_current_stream(self):
        self.assertEqual(self.put(CudaTensor(2, 3)), (2, 1, 0x101))
        self.assertEqual(self.put(CudaTensor(2, 3, gpu=7)), (2, 7, 0x107))
        self.assertEqual(self.put(CudaTensor(0)), (1, 0, 0), "there is nothing of it")
        self.assertEqual(self.put(Tensor(2)), (1, 0, 0))

    def test_who_knows_better_says_so(self):
        class Stream:
            def __init__(self, **facts):
                self.__dict__.update(facts)

        class OfCore:
            def __cuda_stream__(self):
                return 0, 0x33
        for stream, handle in ((0, 0), (0x44, 0x44), (Stream(cuda_stream=0x55), 0x55), (Stream(ptr=0x66), 0x66), (OfCore(), 0x33)):
            for one in (CudaTensor(2), OfCuda(stream=0x99), Packed()):
                self.assertEqual(self.put(one, stream=stream)[2], handle)
            self.assertEqual(self.put(Tensor(2), stream=stream), (1, 0, 0))
        for stream in ("0", -1, 2 ** 64, 1.0, object(), Stream(cuda_stream=None)):
            self.assert_refused("no stream of CUDA's", lambda stream=stream: self.put(CudaTensor(2), stream=stream))

    def test_what_pytorch_copies_first_is_copied_on_the_same_stream(self):
        columns = CudaTensor(4, 3, strides=(1, 4))
        self.put(columns)
        self.put(columns, stream=0x44)
        self.assertEqual(self.torch.made, [("contiguous", None), ("contiguous", (0x44, 1))])
        self.put(CudaTensor(4), stream=0x44, dtype="bfloat16")
        self.assertEqual((self.torch.made[2:], self.library.put[-1][1]), ([("torch.bfloat16", (0x44, 1))], (4, 16, 1)))
        self.put(CudaTensor(4), dtype="float32")
        self.assertEqual(len(self.torch.made), 3, "it is that")
        self.assert_refused("PyTorch 2.9 has no float8_e5m2", lambda: self.put(CudaTensor(4), dtype="float8_e5m2"))

    def test_of_rocm_it_is_said(self):
        self.torch.version.hip = "6.2"
        for one in (CudaTensor(2), Packed(device=(10, 0))):
            with self.assertRaises(tensors.Unsupported) as raised:
                self.put(one)
            self.assertIn("tensor w: it is in memory of a GPU by ROCm", str(raised.exception))

    def test_a_dtensor_is_its_local_part_on_its_gpu(self):
        one = memory_test.DTensor((4, 3), (2,), (1,), [memory_test.Shard(0)], (2, 3))
        one.local = CudaTensor(2, 3, gpu=3)
        self.assertEqual(self.put(one), (2, 3, 0x103))
        self.put(one, dtype="bfloat16")
        one.local = CudaTensor(2, 3, strides=(1, 2))
        self.put(one)
        self.assertEqual([what[1:] for what in self.library.put],
                         [(dtype, [2, 3], [4, 3], [2, 0]) for dtype in ((2, 32, 1), (4, 16, 1), (2, 32, 1))])
        self.source.into({"w": memory_test.DTensor((2,), (1,), (0,), [memory_test.Replicate()], (2,)), "v": CudaTensor(2)})()
        self.assertEqual((self.library.on, self.library.stream), ([(1, 0, 0), (2, 1, 0x101)], 0x101))

    def test_a_pull_fills_on_the_stream_of_all_its_arrays(self):
        pull = self.source.into({"a": CudaTensor(2), "b": CudaTensor(3), "c": Tensor(2), "d": CudaTensor(0, gpu=5)})
        self.assertEqual(self.library.on, [(2, 1, 0x101), (2, 1, 0x101), (1, 0, 0), (1, 0, 0)])
        pull()
        self.assertEqual(self.library.stream, 0x101)
        pull(stream=0x44)
        self.assertEqual(self.library.stream, 0x44)
        other = self.source.into({"a": CudaTensor(2), "b": CudaTensor(2, gpu=2, data_ptr=lambda: NOWHERE + 64)})
        self.assert_refused("tensor a is ready on stream 0x101, and tensor b on stream 0x102: give the stream=", other)
        other(stream=0)
        self.assertEqual(self.library.stream, 0)
        self.source.into({"a": Tensor(2)})()
        self.assertEqual(self.library.stream, 0)


class CudaArrays(DevicesTest):
    def test_they_say_on_which_stream_they_are_ready(self):
        for said, stream in ((None, 0), (1, 1), (2, 2), (0x77, 0x77)):
            self.assertEqual(self.put(OfCuda(stream=said)), (2, -1, stream))
        self.assertEqual(self.put(OfCuda(version=2)), (2, -1, 0))
        self.assert_refused("tensor w: its stream is 0, which may be one of two", lambda: self.put(OfCuda(stream=0)))
        self.assert_refused("its stream is -1", lambda: self.put(OfCuda(stream=-1)))

    def test_where_they_lie(self):
        self.put(OfCuda(strides=None))
        self.put(OfCuda(strides=(24, 4)))
        self.assertEqual((self.library.data, self.library.put[-1]), (NOWHERE, ("w", (2, 32, 1), [2, 3], None, None)))
        self.put(OfCuda(shape=(0, 3), data=(None, False)))
        self.assertEqual(self.library.data, 0)
        named = OfCuda("<V2")
        named.dtype = Named("bfloat16")
        self.put(named)
        self.assertEqual(self.library.put[-1][1], (4, 16, 1))

    def test_what_is_wrong_is_said(self):
        for words, one in {
            "elements of <V2 are not known": OfCuda("<V2"), "in the other order": OfCuda(">f4"), "it is masked": OfCuda(mask=object()),
            "its shape is -1": OfCuda(shape=(-1,)), "its address is -4": OfCuda(data=(-4, False)),
            "its address is %d" % 2 ** 64: OfCuda(data=(2 ** 64, False)), "answers KeyError": OfCuda(),
            "its memory is not copied here: give a dense copy": OfCuda(strides=(4, 8)),
        }.items():
            if "KeyError" in words:
                del one.__cuda_array_interface__["data"]
            self.assert_refused(words, lambda one=one: self.put(one))
        self.assert_refused("may not be written", lambda: self.source.into({"w": OfCuda(data=(NOWHERE, True))}))
        self.assert_refused("do not lie one behind the other", lambda: self.source.into({"w": OfCuda(strides=(4, 8))}))
        self.assertEqual(self.library.put, [])

    def test_they_are_pulled_into(self):
        self.source.into({"w": OfCuda(stream=0x77)})()
        self.assertEqual((self.library.on, self.library.stream), ([(2, -1, 0x77)], 0x77))
        self.version.put_all({"w": OfCuda()})


class DLPack(DevicesTest):
    def test_memory_of_a_gpu_is_taken_on_a_stream_and_given_back(self):
        for major in (None, 1):
            for kind in (2, 13):
                one = Packed(major=major, device=(kind, 3), offset=16)
                version = {} if major is None else {"max_version": (1, 0)}
                self.assertEqual(self.put(one), (kind, 3, 0))
                self.assertEqual(self.library.data, NOWHERE + 16)
                self.assertEqual((one.asked, one.back), ([{"stream": 1, **version}], []))
                self.put(one, stream=0x44)
                self.assertEqual(one.asked[1]["stream"], 0x44)
                self.version._owner.close()
                self.assertEqual(one.back, [ctypes.addressof(one.managed)] * 2)
                self.version = tensors.Version(tensors.publisher("p"), 1)

    def test_memory_of_the_host_is_read_and_given_back(self):
        for kind in (1, 3, 11):
            cells = (ctypes.c_uint16 * 6)(*range(6))
            one = Packed(ctypes.addressof(cells), dtype=(4, 16, 1), device=(kind, 0), strides=(3, 1))
            self.assertEqual(self.put(one), (1, 0, 0))
            self.assertEqual(self.library.put[-1][1:3], ((4, 16, 1), [2, 3]))
            self.assertEqual((one.asked, len(one.back)), ([{"max_version": (1, 0)}], 1))
            self.version.put_all({"w": one})
        cells = (ctypes.c_uint8 * 4)()
        one = Packed(ctypes.addressof(cells), shape=(4,), dtype=(1, 8, 1), device=(1, 0), major=None)
        pull = self.source.into({"w": one})
        pull()
        self.assertEqual((bytes(cells), len(one.back)), (b"\7" * 4, 2))

    def test_what_cuda_has_no_letter_for_is_asked_here(self):
        class Both(Packed, OfCuda):
            def __init__(self):
                Packed.__init__(self, dtype=(4, 16, 1))
                OfCuda.__init__(self, "<V2")
        self.assertEqual(self.put(Both()), (2, 1, 0))
        self.assertEqual(self.library.put[-1][1], (4, 16, 1))

    def test_what_is_refused_is_given_back(self):
        for words, one, writable in (
                ("may not be written", Packed(flags=1), True), ("may not be written", Packed(flags=2), True),
                ("do not lie one behind the other", Packed(strides=(1, 2)), False), ("are not known", Packed(dtype=(0, 4, 1)), False),
                ("do not lie one behind the other", Packed(strides=(-3, 1)), False), ("version 2 of DLPack", Packed(major=2), False)):
            with self.subTest(words):
                self.assert_refused(words, (lambda one=one: self.source.into({"w": one})) if writable else (lambda one=one: self.put(one)))
                gc.collect()
                self.assertEqual(one.back, [ctypes.addressof(one.managed)])
        self.put(Packed(flags=1))
        self.assert_refused("it is on a device of type 8", lambda: self.put(Packed(device=(8, 0))))

    def test_a_capsule_is_used_once(self):
        one = Packed()
        capsule = one.__dlpack__()
        one.__dlpack__ = None

        class Again:
            __dlpack_device__ = one.__dlpack_device__

            def __dlpack__(self, **how):
                return capsule
        self.put(Again())
        self.assert_refused("gave no capsule that can be used", lambda: self.put(Again()))
        Again.__dlpack__ = lambda self, **how: b"dltensor"
        self.assert_refused("gave no capsule that can be used, but a bytes", lambda: self.put(Again()))


class Kept(DevicesTest):
    def put_and_forget(self, publisher, number=1, **how):
        """What is alive of an array that its caller has forgotten: in the block, and after it."""
        seen = []
        try:
            with publisher.version(number, **how) as version:
                tensor = CudaTensor(2, storage_=OfGpu(64))
                alive = weakref.ref(tensor.storage_)
                version.put("w", tensor)
                del tensor
                seen.append(alive() is not None)
        except tensors.Timeout:
            seen.append("Timeout")
        return seen + [alive() is not None], alive

    def test_an_array_is_kept_until_its_version_is_whole(self):
        publisher = tensors.publisher("p")
        self.assertEqual(self.put_and_forget(publisher)[0], [True, False])
        self.assertEqual(self.put_and_forget(publisher, 2, timeout=3)[0], [True, False])
        self.assertEqual(self.library.within, [3000])

    def test_one_whose_stream_is_late_is_kept_until_the_publisher_is_closed(self):
        publisher = tensors.publisher("p")
        self.library.failing = {"version_commit_within": tensors.Timeout("late")}
        seen, late = self.put_and_forget(publisher, timeout=0.5)
        self.assertEqual(seen, [True, "Timeout", True])
        self.library.failing = {}
        self.assertEqual(self.put_and_forget(publisher, 2)[0], [True, False])
        self.assertIsNotNone(late())
        publisher.close()
        self.assertIsNone(late())

    def test_one_of_a_version_that_an_error_left_is_kept_too(self):
        publisher = tensors.publisher("p")
        with self.assertRaises(KeyError):
            with publisher.version(1) as version:
                tensor = CudaTensor(2)
                alive = weakref.ref(tensor.storage_)
                version.put("w", tensor)
                del tensor
                raise KeyError
        self.assertIsNotNone(alive())
        publisher.close()
        self.assertIsNone(alive())

    def test_a_timeout_that_is_none_is_refused_before_anything_begins(self):
        for timeout in ("soon", float("nan"), []):
            self.assert_refused("no number of seconds", tensors.publisher("p").version(1, timeout=timeout).__enter__)

    def test_parts_are_told_anew_where_they_are_other(self):
        for shape in ((2, 3), (2, 3), (3, 2), (6,)):
            self.put(Tensor(*shape))
        self.put(Tensor(2, 3), of=(4, 3), at=(2, 0))
        self.put(CudaTensor(2, 3), of=(4, 3), at=(2, 0))
        self.put(Tensor(2, 3), of=(4, 3), at=(0, 0))
        self.assertEqual([(size, of, at) for _, _, size, of, at in self.library.put], [
            ([2, 3], None, None), ([2, 3], None, None), ([3, 2], None, None), ([6], None, None), ([2, 3], [4, 3], [2, 0]), ([2, 3], [4, 3], [2, 0]),
            ([2, 3], [4, 3], [0, 0])])


if __name__ == "__main__":
    harness.main()
