"""What scripts/bench makes of what it measured: ratios of turns, gates, and peers that are not here (scripts/measuring.py, actor_comparison.py,
peer_benchmarks.py, peers.py, lib.sh)."""

import contextlib
import io
import os
import subprocess
import sys
import unittest.mock

import harness
import tap

sys.path.insert(0, os.path.join(harness.ROOT, "scripts"))

import actor_comparison
import benchmarks
import measuring
import peer_benchmarks
import peers


def printed(call, *args):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        call(*args)
    return out.getvalue()


def turn(**keys):
    """What a build takes: 100 of everything that an older one has, but these."""
    return {**{row.key: 100.0 for row in actor_comparison.ROWS if "buffer" not in row.key}, **{k.replace("__", "."): v for k, v in keys.items()}}


class Benches(harness.MonarchTest):
    def test_a_row_has_the_median_of_the_turns_ratios_and_not_the_ratio_of_medians(self):
        said = printed(measuring.ratio_row, "a call", [10, 20, 90], "another's", [100, 50, 100], lambda value: f"{value} us", "<= 0.5")
        self.assertEqual(said.split(), "a call 20 us another's 100 us 0.40 <= 0.5 (0.10 to 0.90)".split())

    def test_a_row_names_what_is_not_here(self):
        said = printed(measuring.ratio_row, "a call", [10], "torchmonarch", [], lambda value: f"{value} us", "<= 0.5")
        self.assertEqual(said.split(), "a call 10 us no torchmonarch here <= 0.5".split())

    def test_a_table_says_load_and_processors(self):
        with unittest.mock.patch("os.getloadavg", return_value=(3.25, 9, 9)), unittest.mock.patch("machine.processors", return_value=1.5):
            self.assertIn("a load of 3.2 on 1.5 processors\n", printed(measuring.head))

    def test_starts_are_measured_with_state_in_memory_last(self):
        kinds = list(benchmarks.places())
        self.assertTrue(kinds)
        self.assertNotIn("tmpfs", kinds[:-1])
        with unittest.mock.patch("benchmarks.file_system", return_value="tmpfs"):
            self.assertEqual(list(benchmarks.places()), ["tmpfs"])

    # Builds in turns.

    def test_each_entry_is_asked_of_both_builds_and_who_begins_changes(self):
        asked = []
        done = actor_comparison.in_turns(lambda entry: asked.append("a " + entry) or {entry: 1}, lambda entry: asked.append("b " + entry) or {entry: 2}, 2)
        self.assertEqual(asked, "a calls,b calls,a wide,b wide,a deaths,b deaths,b calls,a calls,b wide,a wide,b deaths,a deaths".split(","))
        self.assertEqual(done, [({"calls": 1, "wide": 1, "deaths": 1}, {"calls": 2, "wide": 2, "deaths": 2})] * 2)

    def test_no_turn_begins_that_would_be_over_too_late(self):
        now = [0.0]

        def slow(_):
            now[0] += 15
            return {}
        done = actor_comparison.in_turns(slow, slow, 9, limit_s=300, clock=lambda: now[0])  # 90 s a turn
        self.assertEqual(len(done), 3)
        self.assertEqual(len(actor_comparison.in_turns(slow, slow, 9, limit_s=1, clock=lambda: now[0])), 1)

    def told(self, *turns):
        return {text.split("  ")[0]: (text, missed) for text, missed in actor_comparison.lines(list(turns))}

    def test_a_gate_is_missed_by_the_median_of_the_ratios(self):
        slow, fast = turn(calls__near_p50_us=71), turn(calls__near_p50_us=70)
        text, missed = self.told((slow, turn()), (slow, turn()), (fast, turn()))["one call, one host, p50"]
        self.assertTrue(missed)
        self.assertIn(" 0.71 (0.70 to 0.71)", text)
        self.assertTrue(text.endswith("<= 0.7: missed"), text)
        text, missed = self.told((slow, turn()), (fast, turn()), (fast, turn()))["one call, one host, p50"]
        self.assertFalse(missed)
        self.assertTrue(text.endswith("<= 0.7"), text)

    def test_a_buffer_is_compared_with_the_bytes_of_a_build_that_has_none(self):
        mine = turn(calls__near_buffer_1024KiB_us=14)
        text, missed = self.told((mine, turn()))["1 MiB there, Buffer, one host (Bytes before)"]
        self.assertFalse(missed)
        self.assertIn(" 0.14 ", text)
        self.assertIn(" 0.50 ", self.told((mine, turn(calls__near_buffer_1024KiB_us=28)))["1 MiB there, Buffer, one host"][0])

    def test_what_this_build_does_not_measure_is_said_and_meets_no_gate(self):
        text, missed = self.told((turn(), turn()))["64 MiB there, Buffer, one host"]
        self.assertTrue(missed)
        self.assertIn("not measured: this build has none", text)

    def test_a_build_that_lacks_a_program_is_told_how_to_make_it(self):
        folder = self.path("work", "b")
        for name in ("cli", "worker", "tests/bench"):
            os.makedirs(os.path.join(folder, name))
        for name in ("cli/monarch", "worker/monarch-worker"):
            self.write(f"b/{name}", "")
        self.assertEqual(actor_comparison.missing(folder),
                         f"{folder} has no tests/bench/libactors.so: ninja -C {folder} tests/bench/libactors.so")
        self.write("b/tests/bench/libactors.so", "")
        self.assertEqual(actor_comparison.missing(folder), "")

    # Peers.

    def test_a_peer_is_found_where_it_was_installed_and_else_is_not_there(self):
        os.mkdir(self.path("work", "venv"))
        self.write("venv/python3", "#!/bin/sh\ncase $2 in *torchmonarch*) echo 0.7.0 ;; *) exit 1 ;; esac\n", 0o755)
        with unittest.mock.patch.dict(os.environ, {"MONARCH_BENCH_TORCHMONARCH": self.path("work", "venv")}):
            self.assertEqual(peers.python_of_torchmonarch(), (self.path("work", "venv", "python3"), "0.7.0"))
        with unittest.mock.patch.dict(os.environ, {"MONARCH_BENCH_TORCHMONARCH": self.path("nowhere")}), \
                unittest.mock.patch("subprocess.run", side_effect=OSError):
            self.assertIsNone(peers.python_of_torchmonarch())

    def test_a_peer_that_cannot_be_installed_is_said_and_the_bench_goes_on(self):
        script = f'set -euo pipefail; . {harness.ROOT}/scripts/lib.sh; prepare_peers torchmonarch; echo "on: ${{MONARCH_BENCH_TORCHMONARCH-none}}"'
        environment = {**os.environ, "XDG_CACHE_HOME": self.write("cache", "not a folder")}
        environment.pop("MONARCH_BENCH_TORCHMONARCH", None)
        done = subprocess.run(["bash", "-c", script], env=environment, check=False, capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stdout), (0, "on: none\n"), done.stderr)
        self.assertIn("torchmonarch==", done.stderr)
        self.assertIn("could not be installed", done.stderr)

    # One program in Python, by several packages.

    def test_who_begins_a_turn_changes_and_each_side_has_all_of_it(self):
        asked, names = [], ("monarch", "torchmonarch", "Ray")
        sides = [peer_benchmarks.Side(name, "python3", "1", "", 1) for name in names]
        found = peer_benchmarks.in_turns(sides, 3, lambda side: asked.append(side.name) or len(asked))
        self.assertEqual(asked, [*names, *names[1:], names[0], names[2], *names[:2]])
        self.assertEqual(found, {"monarch": [1, 6, 8], "torchmonarch": [2, 4, 9], "Ray": [3, 5, 7]})

    def test_a_row_says_which_goals_are_not_reached(self):
        one = peer_benchmarks.Row("a call", "k", peer_benchmarks.us, 0.3, 50)
        self.assertEqual(one.goal([30, 40, 60], [100, 200, 100]), "<= 0.3, <= 50 us")
        self.assertEqual(one.goal([60, 60, 60], [100, 100, 100]), "<= 0.3: not reached, <= 50 us: not reached")
        self.assertEqual(one.goal([60], []), "<= 0.3, <= 50 us: not reached")
        rate = peer_benchmarks.Row("calls", "k", peer_benchmarks.rate, 5, 20000, is_rate=True)
        self.assertEqual(rate.goal([30000], [5000]), ">= 5, >= 20,000 /s")
        self.assertEqual(rate.goal([10000], [5000]), ">= 5: not reached, >= 20,000 /s: not reached")

    def test_what_is_not_there_is_skipped_by_its_name(self):
        command = self.write("monarch", "#!/bin/sh\ncase $1 in python) echo /some/folder ;; *) echo monarch 1.2 ;; esac\n", 0o755)
        with unittest.mock.patch("peers.python_of_torchmonarch", return_value=None), unittest.mock.patch("peer_benchmarks.MONARCH", command), \
                unittest.mock.patch("peers.python_of_ray", return_value=("/ray/python3", "2.60.0")):
            self.assertEqual(printed(peer_benchmarks.sides), "skipped: torchmonarch, which is not here and could not be installed\n")
            with contextlib.redirect_stdout(io.StringIO()):
                ours, ray = peer_benchmarks.sides()
        self.assertEqual((ours.python, ours.version, ours.package), ("/usr/bin/python3", "1.2", "/some/folder"))
        self.assertEqual((ray.name, ray.python, ray.version), ("Ray", "/ray/python3", "2.60.0"))
        turns = [{one.key: 10 for one in peer_benchmarks.ROWS}]
        said = printed(peer_benchmarks.show_table, {"monarch": turns, "Ray": turns}, ["Ray"])
        self.assertEqual((said.count("no torchmonarch here"), said.count(" Ray ")), (len(peer_benchmarks.ROWS), len(peer_benchmarks.ROWS)), said)


if __name__ == "__main__":
    tap.main()
