"""save() and load() of monarch_rank.py, against stand-ins for the vault of a host and for its keeper: each answer that there may be."""

import array
import contextlib
import fcntl
import hashlib
import io
import json
import mmap
import os
import pickle
import shutil
import socket
import sys
import tempfile
import threading
import time
import tracemalloc
import unittest
import zipfile
from unittest import mock

import harness

sys.dont_write_bytecode = True
sys.path.insert(0, harness.MODULES)
import monarch_rank as monarch  # noqa: E402

SEALS = 15  # F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_WRITE
ADD_SEALS, GET_SEALS = 1033, 1034
GONE, SILENT = object(), object()  # answers: the connection is closed, and none while the connection stands
KEPT = {"v": 1, "ok": True, "hosts": [0, 4]}
COMMITTED = {"v": 1, "ok": True, "step": 100, "gang": 90}
UNANSWERED = r"^the checkpoint of step 100: the vault of this host \(MONARCH_VAULT\) has not answered for %s s$"
NOWHERE = "the checkpoint of step 100 of trainer/3 is in no host's memory: "


def sealed(content):
    descriptor = os.memfd_create("stand-in", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.write(descriptor, content)
    fcntl.fcntl(descriptor, ADD_SEALS, SEALS)
    return descriptor


def digest_of(content):
    return hashlib.sha256(content).hexdigest()


class Question(dict):
    """The lines of one, and of a descriptor that came along its seals, its size, and its content where that is not large."""

    content = seals = size = None

    def __init__(self, text, descriptor):
        self.text = text
        super().__init__(line.split("=", 1) for line in text.split("\n"))
        if descriptor is not None:
            self.seals, self.size = fcntl.fcntl(descriptor, GET_SEALS), os.fstat(descriptor).st_size
            self.content = os.pread(descriptor, self.size, 0) if self.size < 1 << 20 else None
            os.close(descriptor)


class StandIn:
    """Listens at `path` and gives each question the next answer; the last one stays. An answer is a dictionary, a pair of one and the
    content of a descriptor that goes with it, GONE or SILENT."""

    def __init__(self, path, *answers):
        self.path, self.answers, self.questions, self._held = path, list(answers), [], []
        self._door = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._door.bind(path)
        self._door.listen(16)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self):
        with contextlib.suppress(OSError):
            self._door.shutdown(socket.SHUT_RDWR)
        self._thread.join(10)
        self._door.close()
        for link in self._held:
            link.close()
        os.unlink(self.path)

    def _serve(self):
        with contextlib.suppress(OSError):  # it is closed
            while True:
                self._answer(self._door.accept()[0])

    def _answer(self, link):
        text, descriptors, _, _ = socket.recv_fds(link, 4096, 4)
        question = Question(text.decode(), descriptors[0] if descriptors else None)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        self.questions.append(question)
        if answer is SILENT:
            self._held.append(link)
            return
        if answer is not GONE:
            words, content = answer if isinstance(answer, tuple) else (answer, None)
            passed = [] if content is None else [sealed(content)]
            socket.send_fds(link, [json.dumps(words).encode()], passed)
            for descriptor in passed:
                os.close(descriptor)
        link.close()


class VaultTalk(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="mv-", dir="/tmp")
        self.addCleanup(shutil.rmtree, self.folder)
        place = {"MONARCH_MESH": "trainer", "MONARCH_RANK": "3", "MONARCH_GENERATION": "4", "MONARCH_SOCKET": self.path("s"),
                 "MONARCH_VAULT": self.path("v")}
        patched = mock.patch.dict(os.environ, place)
        patched.start()
        self.addCleanup(patched.stop)
        self.open_before = len(os.listdir("/proc/self/fd"))
        monarch._newest["step"] = None

    def path(self, name):
        return os.path.join(self.folder, name)

    @contextlib.contextmanager
    def doors(self, vault=(KEPT,), keeper=(COMMITTED,)):
        """A vault and a keeper with these answers, and what comes to standard error; no descriptor is left open by what is done here."""
        text = io.StringIO()
        with contextlib.closing(StandIn(self.path("s"), *keeper)) as of_keeper:
            with contextlib.closing(StandIn(self.path("v"), *vault)) as of_vault, contextlib.redirect_stderr(text):
                yield of_vault, of_keeper, text
        self.assertEqual(len(os.listdir("/proc/self/fd")), self.open_before, "descriptors were left open")

    def resumed(self, content, hosts="0,4", rank=3):
        """The environment of a rank that goes on from this checkpoint."""
        os.environ.update(MONARCH_COMMITTED_STEP="100", MONARCH_COMMITTED_GENERATION="3",
                          MONARCH_COMMITTED_WHAT=f"vault:{rank}:{hosts}:{digest_of(content)}")

    def assert_raises(self, kind, pattern, function, *arguments, **options):
        with self.assertRaisesRegex(kind, pattern) as caught:
            function(*arguments, **options)
        self.assertIs(type(caught.exception), kind)


class Saves(VaultTalk):
    def test_what_is_kept_is_committed_under_its_digest_and_hosts(self):
        with self.doors() as (vault, keeper, text):
            self.assertIs(monarch.save(100, b"weights"), True)
            self.assertIs(monarch.save(100, b"weights", gang=True), True)
        question = vault.questions[0]
        self.assertEqual(vault.questions[1].text, question.text)
        self.assertEqual(question.text, "VAULT=save\nMESH=trainer\nRANK=3\nGENERATION=4\nSTEP=100\nDIGEST=" + digest_of(b"weights"))
        self.assertEqual((question.content, question.seals & SEALS), (b"weights", SEALS))
        self.assertEqual([q.text for q in keeper.questions],
                         [f"COMMIT=100\nOF={whose}\nWHAT=vault:3:0,4:{digest_of(b'weights')}" for whose in ("rank", "gang")])
        self.assertEqual((monarch.gang_step(), text.getvalue()), (90, ""))

    def test_anything_with_a_buffer_may_be_saved(self):
        numbers = array.array("d", [1.5, 2.5, 3.5])
        table = memoryview(bytes(range(12))).cast("B", [3, 4])
        for data, content in [(b"x", b"x"), (bytearray(b"xy"), b"xy"), (memoryview(b"abcd")[1:3], b"bc"), (b"", b""),
                              (lambda file: None, b""), (numbers, numbers.tobytes()), (table, table.tobytes())]:
            with self.doors() as (vault, _, _):
                self.assertIs(monarch.save(100, data), True)
            self.assertEqual((vault.questions[0].content, vault.questions[0]["DIGEST"]), (content, digest_of(content)))

    def test_a_function_writes_to_a_file_where_it_may_seek(self):
        def write(file):
            file.write(b"....tail")
            file.seek(0)
            file.write(b"head")

        def pack(file):
            with zipfile.ZipFile(file, "w") as archive:
                archive.writestr("part", b"content")
            file.close()

        with self.doors() as (vault, _, _):
            self.assertIs(monarch.save(100, write), True)
            self.assertIs(monarch.save(100, pack), True)
        written, packed = (question.content for question in vault.questions)
        self.assertEqual((written, zipfile.ZipFile(io.BytesIO(packed)).read("part")), (b"headtail", b"content"))
        self.assertEqual([question["DIGEST"] for question in vault.questions], [digest_of(q.content) for q in vault.questions])

    def test_what_cannot_be_saved_is_said_and_nobody_is_asked(self):
        def fails(_):
            raise KeyError("weights")

        held = []
        with self.doors() as (vault, keeper, _):
            self.assert_raises(TypeError, "bytes-like", monarch.save, 100, "text")
            self.assert_raises(KeyError, "weights", monarch.save, 100, fails)
            self.assert_raises(BufferError, "contiguous", monarch.save, 100, memoryview(b"abcd")[::2])

            def maps(file):
                file.write(b"content")
                file.flush()
                held.append(mmap.mmap(file.fileno(), 0))
            self.assert_raises(OSError, "the file of the checkpoint of step 100 cannot be sealed: it is still mapped for writing",
                               monarch.save, 100, maps)
            held.pop().close()
            self.assertEqual(vault.questions + keeper.questions, [])

    def test_a_large_one_is_not_copied_by_python(self):
        piece = os.urandom(1 << 20)
        large = piece * 64
        for data in (large, lambda file: [file.write(piece) for _ in range(64)]):
            with self.doors() as (vault, _, _):
                tracemalloc.start()
                self.assertIs(monarch.save(100, data), True)
                most = tracemalloc.get_traced_memory()[1]
                tracemalloc.stop()
            self.assertEqual((vault.questions[0].size, vault.questions[0]["DIGEST"]), (64 << 20, digest_of(large)))
            self.assertLess(most, 8 << 20)

    def test_a_large_one_is_hashed_beside_its_writing(self):
        large = os.urandom(1 << 20) * 9 + b"tail"
        threads, started = threading.active_count(), []
        start = threading.Thread.start

        def hashes(thread):
            started.append(thread)
            start(thread)

        for data in (large, bytearray(large), memoryview(large)[1:], array.array("H", large)):
            with self.doors() as (vault, _, _), mock.patch.object(threading.Thread, "start", hashes):
                self.assertIs(monarch.save(100, data), True)
            content = bytes(memoryview(data).cast("B"))
            self.assertEqual((vault.questions[0].size, vault.questions[0]["DIGEST"]), (len(content), digest_of(content)))
        self.assertEqual(len(started), 4)
        with self.doors() as (vault, _, _), mock.patch.object(threading.Thread, "start", side_effect=RuntimeError("no more threads")):
            self.assertIs(monarch.save(100, large), True)
        self.assertEqual(vault.questions[0]["DIGEST"], digest_of(large))
        with self.doors() as (vault, _, _), mock.patch.object(os, "write", side_effect=OSError(28, "No space left on device")):
            self.assert_raises(OSError, "No space left", monarch.save, 100, large)
        self.assertEqual((vault.questions, threading.active_count()), ([], threads))

    def test_each_no_of_the_vault_is_told_in_its_way_and_commits_nothing(self):
        full = "checkpoints.memory of host h2 is 8.0 GiB: 7.1 GiB are taken, and trainer/3 has 1.2 GiB of step 100"
        with self.doors(vault=[{"v": 1, "ok": False, "refused": "generation 5 has its place"}, {"v": 1, "ok": False, "full": full},
                               {"v": 1, "error": "STEP is a number"}]) as (_, keeper, text):
            self.assertIs(monarch.save(100, b"x"), False)
            self.assertEqual(text.getvalue(), "monarch_rank: the checkpoint of step 100 does not count: generation 5 has its place\n")
            self.assert_raises(MemoryError, "^" + full.replace(".", r"\.") + "$", monarch.save, 100, b"x")
            self.assert_raises(ValueError, "the checkpoint of step 100: STEP is a number", monarch.save, 100, b"x")
        self.assertEqual(keeper.questions, [])

    def test_one_that_no_other_host_takes_is_offered_again_for_a_while_and_then_kept_here_alone(self):
        alone = {**KEPT, "hosts": [3], "short": "h2 is away"}
        self.addCleanup(monarch._copies.update, short=None, alone=False)
        with self.doors(vault=[alone, alone, {**KEPT, "short": "h5 is away"}, KEPT]) as (vault, _, said):
            self.assertIs(monarch.save(100, b"weights"), True)
            self.assertIs(monarch.save(200, b"weights"), True)
        self.assertEqual([question.content for question in vault.questions], [b"weights"] * 4)
        self.assertEqual(said.getvalue(), "monarch_rank: the checkpoint of step 100 is on 2 hosts: h5 is away\n")
        with mock.patch.object(monarch, "_ALONE_SECONDS", 0.5):
            with self.doors(vault=[alone]) as (vault, keeper, said):
                self.assertIs(monarch.save(300, b"weights"), True)
                asked = len(vault.questions)
                self.assertGreater(asked, 1)
                self.assertIs(monarch.save(400, b"weights"), True)  # at once: it is known by now
                self.assertEqual(len(vault.questions), asked + 1)
        self.assertEqual(said.getvalue(), "monarch_rank: the checkpoint of step 300 is on this host alone: h2 is away\n")
        self.assertTrue(keeper.questions[0]["WHAT"].startswith("vault:3:3:"))

    def test_an_answer_that_is_none_is_an_error(self):
        with self.doors(vault=[{"v": 2}]) as (_, keeper, _):
            self.assert_raises(OSError, r'^the checkpoint of step 100: \{"v": 2\} was answered$', monarch.save, 100, b"x")
        self.assertEqual(keeper.questions, [])

    def test_one_that_is_kept_and_not_committed_does_not_count(self):
        with self.doors(keeper=[{"v": 1, "ok": False, "step": 100, "refused": "it is over"}, SILENT]) as (_, keeper, text):
            self.assertIs(monarch.save(100, b"x"), False)
            self.assertIn("step 100 does not count: it is over\n", text.getvalue())
            self.assert_raises(TimeoutError, r"^the checkpoint of step 101: nobody has answered for 0\.3 s; it may yet count$",
                               monarch.save, 101, b"x", timeout=0.3)
        self.assertEqual([question["COMMIT"] for question in keeper.questions], ["100", "101"])

    def test_a_vault_that_does_not_answer_is_waited_for_until_the_time_is_over(self):
        for answer in (SILENT, GONE):
            with self.doors(vault=[answer]) as (vault, keeper, _):
                begin = time.monotonic()
                self.assert_raises(TimeoutError, UNANSWERED % "0.5", monarch.save, 100, b"x", timeout=0.5)
                self.assertGreaterEqual(time.monotonic() - begin, 0.5)
                self.assertEqual(keeper.questions, [])
                self.assertTrue(len(vault.questions) == 1 if answer is SILENT else len(vault.questions) > 1, vault.questions)

    def test_a_vault_that_ends_while_it_is_asked_is_asked_again_when_it_is_back(self):
        vaults, talks, talk = [StandIn(self.path("v"), GONE)], [], monarch._talk_to_vault

        def talking(*arguments):
            answer = talk(*arguments)
            talks.append(answer)
            if len(talks) == 1:
                vaults[0].close()
            elif len(talks) == 3:
                vaults.append(StandIn(self.path("v"), KEPT))
            return answer

        with mock.patch.object(monarch, "_talk_to_vault", talking), mock.patch.object(monarch, "_ASK_AGAIN_SECONDS", 0.01):
            with contextlib.closing(StandIn(self.path("s"), COMMITTED)):
                self.assertIs(monarch.save(100, b"x", timeout=None), True)
        vaults[1].close()
        self.assertEqual(talks, [({}, None)] * 3 + [(KEPT, None)])
        self.assertEqual(vaults[1].questions[0].text, vaults[0].questions[0].text)
        self.assertEqual(vaults[1].questions[0].content, b"x")

    def test_who_saves_is_read_when_it_saves(self):
        with self.doors() as (vault, _, _):
            for name in ("MONARCH_MESH", "MONARCH_RANK", "MONARCH_GENERATION"):
                del os.environ[name]
            self.assert_raises(RuntimeError, r"^MONARCH_MESH is not set: this rank has no place before gate\(\)$", monarch.save, 1, b"x")
            os.environ.update(MONARCH_MESH="m", MONARCH_RANK="7", MONARCH_GENERATION="9")
            self.assertIs(monarch.save(100, b"x"), True)
        self.assertTrue(vault.questions[0].text.startswith("VAULT=save\nMESH=m\nRANK=7\nGENERATION=9\nSTEP=100\n"), vault.questions)

    def test_a_job_that_keeps_none_names_the_key_and_outside_of_monarch_nothing_is_kept(self):
        del os.environ["MONARCH_VAULT"]
        self.assert_raises(RuntimeError, "this job keeps no checkpoints in memory: its spec has no `checkpoints`", monarch.save, 1, b"x")
        self.assertIsNone(monarch.load())
        del os.environ["MONARCH_SOCKET"]
        self.assertIs(monarch.save(1, self.fail), True)
        self.assertIsNone(monarch.load())

    def test_an_older_python_makes_the_file_by_the_c_library(self):
        without = {name: getattr(os, name) for name in dir(os) if name != "memfd_create"}
        with self.doors() as (vault, _, _), mock.patch.object(monarch, "os", mock.Mock(spec=list(without), **without)):
            self.assertIs(monarch.save(100, b"weights"), True)
        self.assertEqual((vault.questions[0].content, vault.questions[0].seals & SEALS), (b"weights", SEALS))


class Loads(VaultTalk):
    FOUND = {"v": 1, "ok": True, "host": 4}

    def test_nothing_was_committed_or_by_another_name(self):
        with self.doors() as (vault, _, _):
            self.assertIsNone(monarch.load())
            for name in ("ckpt/100", "vault:", "vault:3:0,4:no-digest", f"vault:x:0:{digest_of(b'')}"):
                self.resumed(b"")
                os.environ["MONARCH_COMMITTED_WHAT"] = name
                self.assertIsNone(monarch.load(), name)
        self.assertEqual(vault.questions, [])

    def test_what_was_saved_is_a_buffer_and_reads_like_a_file(self):
        content = b"first line\nsecond\n" + bytes(range(256)) * 64
        self.resumed(content)
        with self.doors(vault=[(self.FOUND, content)]) as (vault, _, text):
            for _ in range(2):  # the same process may ask twice
                found = monarch.load()
                self.assertEqual((bytes(found), len(found)), (content, len(content)))
                with memoryview(found) as view:
                    self.assertTrue(view.readonly)
                with self.assertRaises(TypeError):
                    found[0] = 1
                self.assertEqual((found.readline(), found.tell(), found.read(6)), (b"first line\n", 11, b"second"))
                self.assertEqual((found.seek(1, os.SEEK_CUR), found.seek(-4, os.SEEK_END), found.read()),
                                 (18, len(content) - 4, content[-4:]))
                buffer = bytearray(8)
                self.assertEqual((found.seek(len(content) - 3), found.readinto(buffer), found.readinto(buffer)),
                                 (len(content) - 3, 3, 0))
                self.assertEqual(bytes(buffer[:3]), content[-3:])
                found.close()
        self.assertEqual(text.getvalue(), "")
        self.assertEqual({question.text for question in vault.questions}, {
            "VAULT=load\nMESH=trainer\nRANK=3\nGENERATION=3\nSTEP=100\nDIGEST=" + digest_of(content) + "\nHOSTS=0,4"})

    def test_libraries_read_it(self):
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("part", b"content" * 1000)
        for content, read, wanted in [
            (pickle.dumps({"step": 5, "data": b"x" * 100_000}, 4), pickle.load, {"step": 5, "data": b"x" * 100_000}),
            (packed.getvalue(), lambda found: zipfile.ZipFile(found).read("part"), b"content" * 1000),
            (b'{"a": 1}', json.load, {"a": 1}),
            (b"a\nb\n", lambda found: list(io.BufferedReader(found)), [b"a\n", b"b\n"])]:
            self.resumed(content)
            with self.doors(vault=[(self.FOUND, content)]):
                self.assertEqual(read(monarch.load()), wanted)

    def test_an_empty_one_that_another_rank_saved_for_its_gang(self):
        self.resumed(b"", rank=0)
        with self.doors(vault=[(self.FOUND, b"")]) as (vault, _, _):
            found = monarch.load()
            self.assertIsNotNone(found)
            self.assertEqual((found.read(), found.readline(), found.seek(0), found.tell()), (b"", b"", 0, 0))
        self.assertEqual((vault.questions[0]["MESH"], vault.questions[0]["RANK"]), ("trainer", "0"))

    def test_a_spoiled_copy_is_named_and_another_one_is_taken(self):
        self.resumed(b"weights", hosts="0,2,4")
        with self.doors(vault=[(self.FOUND, b"weighty"), ({**self.FOUND, "host": 0}, b""),
                               ({**self.FOUND, "host": 2}, b"weights")]) as (vault, _, text):
            self.assertEqual(bytes(monarch.load()), b"weights")
        self.assertEqual([question.get("NOT") for question in vault.questions], [None, "4", "4,0"])
        self.assertEqual(text.getvalue(), "".join(
            f"monarch_rank: the copy of the checkpoint of step 100 that came from host {host} is not what was saved (sha256); "
            "another is asked for\n" for host in (4, 0)))

    def test_one_whose_holder_is_on_its_way_back_is_waited_for(self):
        self.resumed(b"weights")
        away = {"v": 1, "ok": False, "missing": "h3 is not connected"}
        with self.doors(vault=[away, away, self.FOUND, (self.FOUND, b"weights")]) as (vault, _, text), \
                mock.patch.object(monarch, "_LOOK_AGAIN_SECONDS", 0.01):
            self.assertEqual(bytes(monarch.load()), b"weights")
        self.assertEqual(len(vault.questions), 4)
        self.assertEqual(text.getvalue(), f"monarch_rank: {NOWHERE}h3 is not connected; looking for it again\n"
                         f"monarch_rank: {NOWHERE}its descriptor did not come through: has this process too many open files?; "
                         "looking for it again\n")

    def test_one_that_no_host_has_is_an_error_when_the_time_is_over(self):
        self.resumed(b"weights")
        missing = {"v": 1, "ok": False, "missing": "h3 does not have it"}
        with self.doors(vault=[(self.FOUND, b"bad"), missing]), mock.patch.object(monarch, "_LOOK_AGAIN_SECONDS", 0.05):
            self.assert_raises(FileNotFoundError, f"^{NOWHERE}h3 does not have it; what came from host 4 is not what was saved$",
                               monarch.load, timeout=0.3)
        with self.doors(vault=[missing, SILENT]):
            self.assert_raises(FileNotFoundError, "h3 does not have it", monarch.load, timeout=1.5)

    def test_a_vault_that_does_not_answer(self):
        self.resumed(b"weights")
        with self.doors(vault=[SILENT]):
            self.assert_raises(TimeoutError, UNANSWERED % "0.3", monarch.load, timeout=0.3)
        self.assert_raises(TimeoutError, UNANSWERED % "0.3", monarch.load, timeout=0.3)  # nobody listens
        with self.doors(vault=[GONE, (self.FOUND, b"weights")]) as (vault, _, _):
            self.assertEqual(bytes(monarch.load()), b"weights")
            self.assertEqual(len(vault.questions), 2)

        with self.doors(vault=[{"v": 1, "error": "HOSTS is a list"}]):
            self.assert_raises(ValueError, "the checkpoint of step 100: HOSTS is a list", monarch.load)
        del os.environ["MONARCH_VAULT"]
        self.assert_raises(RuntimeError, "this job keeps no checkpoints in memory", monarch.load)


if __name__ == "__main__":
    harness.main()
