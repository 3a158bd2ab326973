"""What monarch_tensors takes for memory, and how it finds what was replaced: with a library that notes what it is told, and with arrays
that say of themselves what PyTorch's and NumPy's do."""

import ctypes
import os
import re
import sys
import threading
import unittest
from array import array

import harness

sys.path.insert(0, harness.MODULES)
import monarch_tensors as tensors  # noqa: E402  # pylint: disable=wrong-import-position


class Named:
    def __init__(self, name):
        self.name = self.type = name

    def __str__(self):
        return self.name


class Storage:
    def __init__(self, cells):
        self.cells = (ctypes.c_float * cells)()
        self._cdata = id(self)

    def nbytes(self):
        return ctypes.sizeof(self.cells)


class Tensor:
    """As PyTorch's, of float32."""

    is_quantized = is_nested = False
    layout, device, dtype = Named("torch.strided"), Named("cpu"), Named("torch.float32")

    def __init__(self, *shape, strides=None, storage=None, **facts):
        self.shape, self.strides = shape, strides
        if strides is None:
            self.strides = [1] * len(shape)
            for dim in range(len(shape) - 2, -1, -1):
                self.strides[dim] = self.strides[dim + 1] * shape[dim + 1]
        cells = 1
        for extent in shape:
            cells *= extent
        self.storage_ = storage or Storage(cells)
        self.__dict__.update(facts)

    def data_ptr(self):
        return ctypes.addressof(self.storage_.cells) if self.storage_.nbytes() else 0

    def stride(self):
        return self.strides

    def element_size(self):
        return 4

    def storage_offset(self):
        return 0

    def untyped_storage(self):
        return self.storage_

    def is_conj(self):
        return False

    is_neg = is_conj

    def contiguous(self):
        return Tensor(*self.shape)

    def replace(self):
        """As param.data = does."""
        self.storage_ = Storage(len(self.storage_.cells))


class Shard:
    def __init__(self, dim):
        self.dim = dim


class _StridedShard(Shard):
    def __init__(self, dim, split_factor):
        super().__init__(dim)
        self.split_factor = split_factor


class Replicate:
    pass


class Partial:
    pass


class Mesh:
    def __init__(self, sizes, coordinate):
        self.sizes, self.coordinate = sizes, coordinate

    def size(self, dim):
        return self.sizes[dim]

    def get_coordinate(self):
        return self.coordinate


class DTensor:
    def __init__(self, shape, sizes, coordinate, placements, local):
        self.shape, self.placements = shape, placements
        self.device_mesh, self.local = Mesh(sizes, coordinate), Tensor(*local)

    def to_local(self):
        return self.local

    # What crashed a trainer: it has no memory.
    def data_ptr(self):
        return 0

    def stride(self):
        return (1,) * len(self.shape)


class Numpy:
    def __init__(self, typestr, name, strides=None, **interface):
        self.memory = (ctypes.c_char * 64)()
        self.dtype = Named(name)
        self.ctypes = None
        self.__array_interface__ = {"typestr": typestr, "shape": (2,), "data": (ctypes.addressof(self.memory), False), "version": 3}
        self.__array_interface__.update(interface, strides=strides)


class Part(ctypes.Structure):
    """monarch_tensors_part_v1."""

    _fields_ = [("struct_size", ctypes.c_uint32), ("dims", ctypes.c_uint32), ("name", ctypes.c_char_p), ("data", ctypes.c_uint64),
                ("dtype_code", ctypes.c_uint8), ("dtype_bits", ctypes.c_uint8), ("dtype_lanes", ctypes.c_uint16), ("reserved", ctypes.c_uint32),
                ("size", ctypes.POINTER(ctypes.c_uint64)), ("strides", ctypes.POINTER(ctypes.c_int64)), ("of", ctypes.POINTER(ctypes.c_uint64)),
                ("at", ctypes.POINTER(ctypes.c_uint64)), ("device_type", ctypes.c_int32), ("device", ctypes.c_int32), ("stream", ctypes.c_uint64)]

    def on(self):
        return self.device_type, self.device, self.stream


class Library:
    """In place of the session with the real one. A pull writes 7 into each byte that it was made for."""

    def __init__(self):
        self.put, self.pulls, self.freed, self.cancelled, self.next = [], {}, [], [], 1
        self.within, self.failing = [], {}
        self.handle = ctypes.c_void_p(1)
        self.during = lambda: None

    def use(self):
        return self

    def call(self, name, *arguments):
        if name in self.failing:
            raise self.failing[name]
        if name == "version_commit_within":
            self.within.append(arguments[1].value)
        if name in ("version_put", "version_put_as"):
            part = Part.from_buffer(arguments[1])
            dims = range(part.dims)
            self.on = part.on()
            self.data = part.data
            self.put.append((part.name.decode(), (part.dtype_code, part.dtype_bits, part.dtype_lanes), [part.size[d] for d in dims],
                             [part.of[d] for d in dims] if part.of else None, [part.at[d] for d in dims] if part.at else None))
        if name == "pull_make":
            parts, count, made = arguments[3], arguments[4].value, arguments[5]._obj
            parts = (Part * count).from_buffer(parts) if count else []
            made.value, self.next = self.next, self.next + 1
            self.pulls[made.value] = [(part.name.decode(), part.data, part.size[0] * part.dtype_bits // 8) for part in parts
                                      if part.device_type == 1]
            self.on = [part.on() for part in parts]
        if name == "pull_run":
            self.during()
            self.stream = arguments[1]._obj.stream
            if arguments[0].value in self.cancelled:
                raise tensors.Cancelled("it was")
            for _, data, size in self.pulls[arguments[0].value]:
                ctypes.memset(data, 7, size)

    def tell(self, name, *arguments):
        if name == "pull_free" and arguments[0].value:
            self.freed.append(arguments[0].value)
            del self.pulls[arguments[0].value]
        if name == "pull_cancel":
            self.cancelled.append(arguments[0].value)


class MemoryTest(unittest.TestCase):
    def setUp(self):
        self.library, real = Library(), tensors._session
        tensors._session = self.library
        self.addCleanup(setattr, tensors, "_session", real)
        self.version = tensors.Version(tensors.publisher("p"), 1)
        self.source = tensors.source("mesh", "p")

    def names(self):
        return [name for name, *_ in self.library.put]

    def assert_refused(self, words, run):
        with self.assertRaises(tensors.TensorError) as raised:
            run()
        self.assertIn(words, str(raised.exception))

    def assert_pulled(self, tensor):
        self.assertEqual(set(bytes(tensor.storage_.cells)), {7})


class Replaced(MemoryTest):
    def test_memory_that_was_replaced_is_what_the_next_run_writes(self):
        tensor, other = Tensor(8), Tensor(8)
        pull = self.source.into({"w": tensor, "o": other})
        pull()
        old = tensor.storage_
        ctypes.memset(old.cells, 1, old.nbytes())
        tensor.replace()
        pull()
        self.assert_pulled(tensor)
        self.assertEqual((set(bytes(old.cells)), self.library.freed), ({1}, [1]))
        pull()
        self.assertEqual(self.library.freed, [1], "nothing has changed since")

    def test_memory_that_was_freed_is_refused_and_nothing_is_written(self):
        tensor, other = Tensor(8), Tensor(8)
        pull = self.source.into({"o": other, "w": tensor})
        tensor.storage_.cells = (ctypes.c_float * 0)()
        self.assert_refused("tensor w: its storage has 0 bytes, and it needs 32: that was freed, as by resize_(0)", pull)
        self.assertEqual(set(bytes(other.storage_.cells)), {0})
        self.assert_refused("that was freed", lambda: self.version.put_all({"o": other, "w": tensor}))
        self.assertEqual(self.library.put, [])
        tensor.replace()
        tensor.storage_ = Storage(8)
        pull()
        self.assert_pulled(tensor)

    def test_another_shape_and_another_type_are_seen(self):
        tensor = Tensor(8)
        pull = self.source.into({"w": tensor})
        tensor.shape, tensor.strides = (2, 4), (4, 1)
        pull()
        tensor.dtype = Named("torch.int32")
        pull()
        self.assertEqual(self.library.freed, [1, 2])

    def test_a_storage_is_held_while_it_is_written_and_no_longer(self):
        tensor = Tensor(8)
        pull = self.source.into({"w": tensor})
        count = sys.getrefcount(tensor.storage_)
        seen = []
        self.library.during = lambda: seen.append(sys.getrefcount(tensor.storage_))
        pull()
        self.assertEqual((seen, sys.getrefcount(tensor.storage_)), ([count + 1], count))

    def test_a_buffer_is_exported_for_as_long_as_the_pull(self):
        cells = bytearray(8)
        pull = self.source.into({"w": cells})
        pull()
        self.assertRaises(BufferError, cells.extend, b"more")
        self.assertEqual((cells, self.library.freed), (b"\7" * 8, []))

    def test_a_model_is_asked_anew_by_each_run(self):
        class Model:
            def __init__(self):
                self.w = Tensor(8)

            def state_dict(self):
                return {"w": self.w}
        model = Model()
        pull = self.source.into(model)
        pull()
        model.w = Tensor(8)
        pull()
        self.assert_pulled(model.w)
        self.version.put_all(model)
        self.assertEqual(self.names(), ["w"])

    def test_who_cancels_is_heard_by_the_handle_of_other_memory(self):
        tensor = Tensor(8)
        pull = self.source.into({"w": tensor})
        thread = threading.Thread(target=pull.cancel)
        thread.start()
        thread.join()
        tensor.replace()
        self.assertRaises(tensors.Cancelled, pull)
        self.assertEqual(self.library.cancelled, [1, 2])
        pull.close()
        self.assert_refused("it is closed", pull)


class NoPlainMemory(MemoryTest):
    def test_each_is_refused_by_name_with_what_to_call(self):
        for words, facts in {
            "to_dense()": {"layout": Named("torch.sparse_coo")},
            "int_repr()": {"is_quantized": True},
            "unbind()": {"is_nested": True},
            "to_empty(device=\"cpu\")": {"device": Named("meta")},
            "cpu()": {"device": Named("xpu:0")},
            "resolve_conj()": {"is_conj": lambda: True},
            "resolve_neg()": {"is_neg": lambda: True},
            "view(torch.uint8)": {"dtype": Named("torch.qint8")},
            "local_shards()": {"local_shards": []},
            "to_local()": {"data_ptr": lambda: 0},
            "dequantize()": {"stride": None},
        }.items():
            for run in (lambda one: self.source.into({"layer.w": one}), lambda one: self.version.put("layer.w", one),
                        lambda one: self.version.put_all({"layer": {"w": one}})):
                with self.subTest(words):
                    self.assert_refused(words, lambda run=run, facts=facts: run(Tensor(2, **facts)))
                    self.assert_refused("tensor layer.w: ", lambda run=run, facts=facts: run(Tensor(2, **facts)))
        self.assertEqual(self.library.put, [])

    def test_what_lies_over_itself_or_in_columns_can_be_read_and_not_written(self):
        for words, tensor in (("call contiguous() or clone()", Tensor(4, 3, strides=(0, 1), storage=Storage(3))),
                              ("do not lie one behind the other", Tensor(4, 3, strides=(1, 4)))):
            self.assert_refused(words, lambda tensor=tensor: self.source.into({"w": tensor}))
            self.version.put("w", tensor)
        self.assertEqual([size for _, _, size, *_ in self.library.put], [[4, 3]] * 2)

    def test_arrays_of_numpy(self):
        for words, one in {
            "elements of int4 are not known: view(\"uint8\")": Numpy("<V1", "int4"),
            "elements of float128": Numpy("<f16", "float128"),
            "elements of object": Numpy("|O", "object"),
            "in the other order": Numpy(">f4", "float32"),
            "call filled()": Numpy("<f4", "float32", mask=b""),
            "may not be written": Numpy("<f4", "float32", data=(16, True)),
        }.items():
            self.assert_refused(words, lambda one=one: self.source.into({"w": one}))
        self.source.into({"w": Numpy("<f4", "float32"), "b": Numpy("|b1", "bool")})()

    def test_a_scalar_is_not_looked_for_where_it_was_for_a_moment(self):
        class Scalar(Numpy):
            def __init__(self):
                super().__init__("<f4", "float32")
                del self.ctypes

            tobytes = None
        self.assert_refused("a Scalar is no array", lambda: self.version.put("w", Scalar()))


class Dtypes(MemoryTest):
    def dtype(self, one):
        self.version.put("w", one)
        return self.library.put[-1][1]

    def test_types_that_numpy_has_no_letter_for_go_by_their_name(self):
        self.assertEqual(self.dtype(Numpy("<f1", "float8_e5m2")), (12, 8, 1))
        self.assertEqual(self.dtype(Numpy("<V1", "float8_e4m3b11fnuz")), (9, 8, 1))
        self.assertEqual(self.dtype(Numpy("<V2", "bfloat16")), (4, 16, 1))

    def test_a_pair_of_four_bits_is_a_byte(self):
        byte = Tensor(2, dtype=Named("torch.float4_e2m1fn_x2"), element_size=lambda: 1)
        self.assertEqual(self.dtype(byte), (17, 4, 2))
        self.version.put("w", byte, dtype="float4_e2m1fn_x2")

    def test_they_are_those_of_the_library(self):
        with open(os.path.join(harness.ROOT, "transport/tensor/core/dtype.cc"), encoding="utf-8") as file:
            found = re.findall(r'NamedDtype\{"(\w+)", \{(\d+), (\d+)(?:, (\d+))?\}\}', file.read())
        self.assertEqual(tensors._memory.DTYPES, {name: (int(code), int(bits), int(lanes or 1)) for name, code, bits, lanes in found})


class DeviceMeshes(MemoryTest):
    def box(self, *arguments):
        self.version.put("w", DTensor(*arguments))
        return self.library.put[-1][2:]

    def test_the_local_part_is_put_as_its_box(self):
        self.assertEqual(self.box((5, 4), (4,), (1,), [Shard(0)], (2, 4)), ([2, 4], [5, 4], [2, 0]))
        self.assertEqual(self.box((5, 4), (4,), (2,), [Shard(0)], (1, 4)), ([1, 4], [5, 4], [4, 0]), "an uneven one")
        self.assertEqual(self.box((5, 4), (4,), (3,), [Shard(0)], (0, 4)), ([0, 4], [5, 4], [5, 0]), "one without rows")
        self.assertEqual(self.box((5, 4), (2, 2), (1, 1), [Replicate(), Shard(1)], (5, 2)), ([5, 2], [5, 4], [0, 2]))
        self.assertEqual(self.box((8, 4), (2, 2), (1, 0), [Shard(0), Shard(0)], (2, 4)), ([2, 4], [8, 4], [4, 0]))
        self.assertEqual(self.box((8, 4), (2, 2), (1, 0), [_StridedShard(0, 2), Shard(0)], (2, 4)), ([2, 4], [8, 4], [2, 0]))

    def test_others_are_refused(self):
        for words, arguments in {
            "its DTensor is Partial over dimension 1": ((4,), (2, 2), (0, 0), [Replicate(), Partial()], (4,)),
            "it is strided over": ((4,), (2,), (0,), [_StridedShard(0, 2)], (2,)),
            "by its placements": ((4,), (2,), (0,), [Shard(0)], (3,)),
            "is not in the device mesh": ((4,), (2,), None, [Shard(0)], (2,)),
        }.items():
            self.assert_refused(words.replace("it is strided", "its DTensor is strided"), lambda arguments=arguments: self.box(*arguments))
        self.assert_refused("give none of them", lambda: self.version.put("w", DTensor((4,), (2,), (1,), [Shard(0)], (2,)), at=(0,)))
        self.version.put("w", DTensor((4,), (2,), (1,), [Shard(0)], (2,)), of=(4,), at=(2,))

    def test_one_is_pulled_into(self):
        tensor = DTensor((4,), (2,), (1,), [Shard(0)], (2,))
        self.source.into({"w": tensor})()
        self.assert_pulled(tensor.local)


class WholeModels(MemoryTest):
    def test_dicts_within_dicts_give_names_with_dots(self):
        state = {"model": {"0.w": Tensor(2), "b": bytearray(4)}, "step": array("q", [7]), "rows": (Tensor(2), (4,), (2,))}
        self.version.put_all(state)
        self.assertEqual([(name, size, of, at) for name, _, size, of, at in self.library.put],
                         [("model.0.w", [2], None, None), ("model.b", [4], None, None), ("step", [1], None, None), ("rows", [2], [4], [2])])
        pull = self.source.into(state)
        pull()
        self.assertEqual([name for name, *_ in self.library.pulls[1]], self.names())

    def test_what_is_tied_goes_once(self):
        tensor = Tensor(2)
        state = {"embed": tensor, "head": Tensor(2, storage=tensor.storage_), "none": Tensor(0), "nothing": Tensor(0)}
        self.version.put_all(state)
        pull = self.source.into(state)
        pull()
        self.assertEqual([self.names(), [name for name, *_ in self.library.pulls[1]]], [["embed", "none", "nothing"]] * 2)

    def test_what_is_no_tensor_is_refused_or_passed_over(self):
        state = {"w": Tensor(2), "opt": {0: {"step": 3, "lr": Tensor(2)}}}
        self.assert_refused("tensor opt.0.step: a int is no tensor; only= passes over it", lambda: self.version.put_all(state))
        self.assertEqual(self.library.put, [])
        for only in ("w", ["w", "opt.*.lr"], lambda name, value: isinstance(value, Tensor)):
            self.version.put_all(state, only=only)
        self.assertEqual(self.names(), ["w"] + ["w", "opt.0.lr"] * 2)
        self.assert_refused("only=: no tensor is called v", lambda: self.version.put_all(state, only=["w", "v"]))

    def test_a_dict_within_itself_ends(self):
        state = {}
        state["s"] = state
        self.assert_refused("more than 64 dicts", lambda: self.version.put_all(state))
        self.assert_refused("two tensors are called a.b", lambda: self.version.put_all({"a": {"b": Tensor(1)}, "a.b": Tensor(1)}))


class Refusals(MemoryTest):
    def test_each_is_a_tensor_error(self):
        tensor, floats = Tensor(2), array("f", [0.0])
        pull, version = self.source.into({"w": tensor}), self.version
        released = memoryview(bytearray(4))
        released.release()
        for run in (
                lambda: version.put(7, tensor), lambda: version.put("", tensor), lambda: version.put("w" * 129, tensor),
                lambda: version.put("a\0b", tensor), lambda: version.put("\ud800", tensor), lambda: version.put("w", None),
                lambda: version.put("w", [1.0]), lambda: version.put("w", 3), lambda: version.put("w", released),
                lambda: version.put("w", tensor, of=7), lambda: version.put("w", tensor, of="a"), lambda: version.put("w", tensor, of=(2.5,)),
                lambda: version.put("w", tensor, of=(-2,)), lambda: version.put("w", tensor, of=(2 ** 64,)), lambda: version.put("w", tensor, at=()),
                lambda: version.put("w", floats, dtype="no"), lambda: version.put("w", floats, dtype=7),
                lambda: version.put("w", Tensor(*[1] * 9)),
                lambda: version.empty("w", 3, "int8"), lambda: version.empty("w", (2,), None), lambda: version.empty("w", ("a",), "int8"),
                lambda: version.empty("w", (-1,), "int8"), lambda: version.empty(None, (1,), "int8"), lambda: version.empty("w", (1,), "int8", of=3),
                lambda: version.put_all(7), lambda: version.put_all([tensor]), lambda: version.put_all({("a", 1): tensor}),
                lambda: version.put_all({"w": ()}), lambda: version.put_all({"w": (tensor, (2,), (0,), 0)}), lambda: version.put_all({"w": tensor}, only=7),
                lambda: version.put_all({"w": tensor}, only=[7]),
                lambda: self.source.into({"w": tensor, "b": "text"}), lambda: self.source.into(tensor), lambda: self.source.into(None),
                lambda: tensors.source(None, "p").into({}), lambda: tensors.source("m", 7).into({}), lambda: tensors.source("m", "p").map(7),
                lambda: pull(newer_than=3), lambda: pull(timeout="soon"), lambda: pull(timeout=float("nan")), lambda: pull(timeout=[]),
                lambda: tensors.publisher(7), lambda: tensors.publisher("p", publishers=7), lambda: tensors.publisher("p", publishers=["a"]),
                lambda: tensors.publisher("p", publishers=[-1]), lambda: tensors.publisher("p", patience="long"), lambda: tensors.publisher("p", linger={}),
                lambda: tensors.publisher("p").version("one").__enter__(), lambda: tensors.publisher("p").version(-1).__enter__(),
                lambda: tensors.publisher("p").version(2 ** 63).__enter__(), lambda: tensors.publisher("p").version(None).__enter__(),
                lambda: tensors.split("a", 0, 1), lambda: tensors.split(4, 1, 1), lambda: tensors.split(4, -1, 1), lambda: tensors.split(4, 0, None)):
            with self.subTest(run.__code__.co_consts):
                with self.assertRaises(tensors.TensorError) as raised:
                    run()
                self.assertTrue(str(raised.exception))
        self.assertEqual(self.library.put, [])

    def test_times_may_be_of_any_length(self):
        pull = self.source.into({"w": Tensor(2)})
        for timeout in (None, 0, -3, 1e300, float("inf")):
            pull(timeout=timeout)
        tensors.publisher("p", patience=float("inf"), linger=1e18)

    def test_elements_that_python_has_no_number_for_are_rows_of_bytes(self):
        for name, size, code, shape in (("complex128", 16, "B", (2, 1, 16)), ("bfloat16", 2, "H", (2, 1)), ("int64", 8, "q", (2, 1))):
            view = tensors._view(bytearray(2 * size), tensors._memory.dtype_named(name), (2, 1))
            self.assertEqual((view.format, view.shape), (code, shape))


if __name__ == "__main__":
    harness.main()
