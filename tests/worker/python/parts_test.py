"""Smaller parts: signatures, futures, ports, classes of failures, and what a program imports that is elsewhere or nowhere."""

import asyncio
import contextlib
import io
import subprocess
import sys
import threading
import time
import unittest

import monarch
from monarch import _bind, _output, _signature, _tied, actor, config, job, rank, rdma, spmd
from monarch._errors import ActorError, MeshFailure
from monarch._future import All, Done, Thing, future, local


class Tied(unittest.TestCase):
    def test_calls_wait_for_interpreters_that_are_slow_to_start(self):
        for mesh in _tied.spec_of(2, {})["meshes"].values():
            self.assertEqual((mesh["ready"], mesh["dims"]), ("notify", {"host": 2, "slot": 256}))


class Output(unittest.TestCase):
    def test_equal_lines_of_a_window_are_one(self):
        lines, shown = _output.Lines(), io.StringIO()
        with contextlib.redirect_stdout(shown):
            lines.add("stdout", "at once\n")
            lines.fold(60)
            for line in ("a\n", "b\n", "a\n", "a\n"):
                lines.add("stdout", line)
            self.assertEqual(shown.getvalue(), "at once\n")
            lines.fold(None)
            lines.add("stdout", "a\n")
        self.assertEqual(shown.getvalue(), "at once\n[3 similar log lines] a\nb\na\n")

    def test_no_window_is_too_long(self):
        lines, shown = _output.Lines(), io.StringIO()
        with contextlib.redirect_stdout(shown):
            lines.fold(60)
            for k in range(_output._MOST_FOLDED + 5):
                lines.add("stdout", "%d\n" % k)
            self.assertEqual(len(shown.getvalue().splitlines()), _output._MOST_FOLDED)
            lines.fold(None)
        self.assertEqual(len(shown.getvalue().splitlines()), _output._MOST_FOLDED + 5)

    def test_a_window_ends_by_itself(self):
        lines, shown = _output.Lines(), io.StringIO()
        with contextlib.redirect_stdout(shown):
            lines.fold(0.001)
            lines.add("stdout", "a\n")
            while not shown.getvalue():
                time.sleep(0.001)
        self.assertEqual(shown.getvalue(), "a\n")


class _AtOnce:
    """What is waited for comes as soon as somebody waits."""

    @staticmethod
    def wait(one, timeout):
        del timeout
        local.complete(one, 3)


class Signatures(unittest.TestCase):
    def test_they_fit_as_python_says(self):
        def plain(self, a, b=1):
            pass

        def starred(self, *a, k, **more):
            pass

        def nothing(self):
            pass

        for function, args, kwargs, fits in (
                (plain, (1,), {}, True), (plain, (1, 2), {}, True), (plain, (), {"a": 1}, True), (plain, (), {}, False), (plain, (1, 2, 3), {}, False),
                (plain, (1,), {"a": 2}, False), (plain, (1,), {"c": 2}, False), (starred, (), {"k": 1}, True), (starred, (1, 2), {"k": 1, "z": 2}, True),
                (starred, (1,), {}, False), (nothing, (), {}, True), (nothing, (1,), {}, False), (len, (1,), {}, True)):
            with self.subTest(function=function.__name__, args=args, kwargs=kwargs):
                check = _signature.Signature(function, 1 if function is not len else 0).check
                if fits:
                    check(args, kwargs)
                else:
                    with self.assertRaises(TypeError):
                        check(args, kwargs)


class Futures(unittest.TestCase):
    def test_all_and_done(self):
        parts = [Thing(local), Thing(local)]
        both = future(All(parts), lambda _: [one.value for one in parts])
        with self.assertRaises(TimeoutError):
            both.get(timeout=0.001)
        threading.Thread(target=lambda: [local.complete(one, k) for k, one in enumerate(parts)]).start()
        self.assertEqual((both.get(timeout=60), both.done(), both.exception()), ([0, 1], True, None))
        self.assertEqual(asyncio.run(_await(both)), [0, 1])
        self.assertIsInstance(future(Done(), lambda _: 1 / 0).exception(), ZeroDivisionError)

    def test_it_warns_on_a_running_loop(self):
        async def wait():
            one = Thing(_AtOnce())
            with self.assertWarnsRegex(RuntimeWarning, "stops everything else of its loop: await"):
                return future(one, lambda on: on.value).get(timeout=60)

        self.assertEqual(asyncio.run(wait()), 3)

    def test_a_coroutine_as_a_future_runs_once(self):
        ran = []

        @actor.returns_future
        async def work(n):
            ran.append(n)
            return n + 1

        one = work(1)
        self.assertEqual((one.get(), one.get(), asyncio.run(_await(work(2))), ran), (2, 2, 3, [1, 2]))

        @actor.returns_future
        async def fails():
            raise KeyError("k")

        with self.assertRaises(KeyError):
            fails().get()



async def _await(one):
    return await one


class Failures(unittest.TestCase):
    def test_what_a_failure_says(self):
        one = MeshFailure("workers", [2], "workers/2 on v1 (pid 77): killed by SIGSEGV [given up]")
        self.assertEqual((one.signal, one.exit_code, one.host, one.ranks), ("SIGSEGV", None, "v1", [2]))
        self.assertEqual(MeshFailure("w", [0], "exit code 3").exit_code, 3)
        self.assertIn("crashed_ranks=[2]", str(one))
        self.assertEqual(str(ActorError(ValueError("x"), "Failed.", "tb")), "Failed.\n tb")


class Elsewhere(unittest.TestCase):
    def test_what_is_not_built_says_what_to_use(self):
        for what, said in (
                (lambda: actor.attach_to_workers(), "launch"), (lambda: actor.run_worker_loop_forever(), "`monarch up`"),
                (lambda: actor.debug_controller(), "monarch stacks"), (lambda: rdma.RDMABuffer(b""), "monarch-tensors"),
                (lambda: job.SlurmJob({}), "launch: .slurm"), (lambda: job.KubernetesJob(), "kubectl"), (lambda: job.SkyPilotJob(), "ssh"),
                (lambda: job.LocalJob().apply("script.py"), "controller")):
            with self.subTest(said), self.assertRaisesRegex(NotImplementedError, said):
                what()
        self.assertEqual((rdma.is_rdma_available(), rdma.is_ibverbs_available()), (False, False))

    def test_what_is_accepted(self):
        import io
        from contextlib import redirect_stderr
        said = io.StringIO()
        with redirect_stderr(said):
            for _ in range(2):
                actor.enable_transport(actor.ChannelTransport.Unix)
                config.configure(default_transport="x")
        self.assertEqual(len(said.getvalue().splitlines()), 2, said.getvalue())  # each once
        with config.configured(a=1), actor.span("x"):
            actor.get_meter("m").create_counter("c").add(1)
        self.assertEqual(actor.traced(len)("ab"), 2)
        self.assertIs(actor.config, config)
        with self.assertRaisesRegex(ValueError, "a number of hosts from 1 on, not 0"):
            job.ProcessJob({"trainers": 0})
        with self.assertRaisesRegex(AttributeError, "Available names: a, b"):
            job.JobState({"a": 1, "b": 2}).trainers
        with self.assertRaisesRegex(ValueError, "both or not at all"):
            spmd.setup_torch_elastic_env(None, "host")
        self.assertTrue(monarch.__doc__)

    def test_names_of_monarchs_own_modules(self):
        from monarch._rust_bindings.monarch_hyperactor.supervision import SupervisionError
        from monarch._src.actor.actor_mesh import ActorMesh
        from monarch._src.actor.endpoint import EndpointProperty
        from monarch._src.actor.shape import NDSlice
        self.assertEqual((SupervisionError, ActorMesh, EndpointProperty), (actor.SupervisionError, actor.ActorMesh, actor.EndpointProperty))
        self.assertEqual(NDSlice.new_row_major([2]).strides, [1])

    def test_imports_are_late(self):
        done = subprocess.run([sys.executable, "-c", "import sys, monarch.rank, monarch.actor; "
                                                     "print([one for one in ('asyncio', 'cloudpickle', 'inspect', 'logging') if one in sys.modules])"],
                              env={"PYTHONPATH": ":".join(sys.path)}, stdout=subprocess.PIPE, check=True)
        self.assertEqual(done.stdout.decode().strip(), "[]")


class Ranks(unittest.TestCase):
    def test_words_of_its_command_line(self):
        one, two = rank.wanted_of(["--actor", "a", "--file", "f.py", "--class=A", "--actor=b", "--module", "m", "--class", "B", "--args", "{}"])
        self.assertEqual((one.name, one.file, one.class_name, two.name, two.module, two.args), ("a", "f.py", "A", "b", "m", "{}"))
        for words, said in ((["x"], "what is x?"), (["--class", "A"], "stands behind the --actor"), (["--actor"], "takes a value"),
                            (["--actor", "a", "--actor", "a"], "actor a is there twice")):
            with self.subTest(said), self.assertRaisesRegex(Exception, said):
                rank.wanted_of(words)
        for words, said in ((["--actor", "a"], "it has a --class, and a --file or a --module"),
                            (["--actor", "a", "--module", "things", "--class", "Wrker"], "things.py has no class Wrker; it has Clash, Color"),
                            (["--actor", "a", "--module", "things", "--class", "Worker", "--args", "[]"], "args are a JSON object"),
                            (["--actor", "a", "--module", "things", "--class", "Worker", "--args", "{"], "args are no JSON"),
                            (["--actor", "a", "--file", "/no/such.py", "--class", "Worker"], "there is no file /no/such.py"),
                            (["--actor", "a", "--module", "no_such", "--class", "W"],
                             "cannot be imported: .*python.* has no module no_such (.|\n)*sys.path: ")):
            with self.subTest(said), self.assertRaisesRegex(Exception, said):
                rank.wanted_of(words)[0].load()

    def test_lists_of_processors(self):
        self.assertEqual(_bind.numbers("0-2,8\n"), [0, 1, 2, 8])


if __name__ == "__main__":
    unittest.main()
