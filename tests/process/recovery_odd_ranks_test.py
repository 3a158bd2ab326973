"""Ranks that are odd (P10, P12-P14, P19): slow, with children left, deaf to signals, in a flood of output."""

import os
import signal

import harness
import recovery


class OddRanks(recovery.RecoveryTest):
    def test_children_that_are_left_are_gone_before_the_next_generation(self):  # P12
        script = ("if [ $MONARCH_GENERATION = 1 ]; then setsid sh -c 'trap \"\" TERM HUP; echo $$ > left.'$MONARCH_RANK'; "
                  "while :; do sleep 1; done' & until [ -s left.$MONARCH_RANK ]; do sleep 0.02; done\n"
                  "else kill -0 $(cat left.$MONARCH_RANK) 2>/dev/null && echo alive > seen.$MONARCH_RANK; fi\n"
                  "mark there\n" + recovery.COUNT)
        run = self.running(script)
        since = self.now()
        self.signal_by_pid(self.pids[2])
        failed = self.wait_for_event("gang.failed")
        self.assert_seen(failed, since)
        self.assert_answer(failed, "restart", 1, 4, rank=2, generation=1)
        self.wait_for_anew([2, 3])
        self.assert_go_on([0, 1])
        for rank in (2, 3):
            self.assertFalse(os.path.exists(self.path("work", f"seen.{rank}")), f"a child of rank {rank} outlived it")
        # A signal goes to the process that has the rank now, whatever had its number before.
        self.assertEqual(self.monarch("signal", "KILL", "--rank", "2").status, 0)
        self.wait_for_event("gang.failed", 2)
        self.assert_go_on([0, 1])
        self.end_well(run)

    def test_a_survivor_that_is_deaf_to_its_stop_signal_is_killed(self):  # P14
        run = self.running("trap '' TERM\nmark there\n" + recovery.COUNT,
                           mesh={"stop": {"grace": "10s", "after_failure": "300ms"}})
        since = self.now()
        self.signal_by_pid(self.pids[3])
        failed = self.wait_for_event("gang.failed")
        self.assert_seen(failed, since)
        self.assert_answer(failed, "restart", 1, 4, rank=3, generation=1)
        self.wait_for_anew([2, 3])
        took = self.now() - since
        self.assertGreater(took, 0.3, "the grace of survivors")
        self.assertLess(took, 8, "the grace of an ordered stop")
        self.assert_go_on([0, 1])
        self.end_well(run)

    def test_one_that_was_stopped_is_killed_with_its_gang(self):
        run = self.running()
        self.signal_by_pid(self.pids[3], signal.SIGSTOP)
        self.signal_by_pid(self.pids[2])
        self.wait_for_anew([2, 3])
        self.assert_go_on([0, 1])
        self.end_well(run)

    def test_a_slow_one_costs_nobody_anything(self):  # P10
        busy = "mark there\ni=0; until [ -e go ]; do j=0; until [ $((++j)) = 2000 ]; do :; done; step $((++i)); done\n"
        run = self.running(busy, hosts=2, slots=1)
        processor = {min(os.sched_getaffinity(self.pids[1]))}
        os.sched_setaffinity(self.pids[1], processor)
        beside = [self.start_program("/bin/sh", "-c", "while :; do :; done") for _ in range(3)]
        for one in beside:
            os.sched_setaffinity(one.pid, processor)
        for _ in range(3):
            self.assert_go_on([0, 1])
        for one in beside:
            one.end()
        self.assert_unseen("rank.hung", "rank.stopped", "host.suspect")
        self.assert_nothing_done()
        self.end_well(run)

    def test_a_flood_of_output_delays_nothing(self):  # P19
        script = ("[ $MONARCH_RANK = 3 ] && { yes & }\n[ $MONARCH_RANK = 1 ] && exec >&-\nmark there\n" + recovery.COUNT)
        run = self.start("up", self.counting(script))
        self.assertEqual(run.wait(), 0, run)
        self.pids = dict(enumerate(self.wait_for_marks("there", 4)))
        since = self.now()
        self.signal_by_pid(self.pids[2])
        failed = self.wait_for_event("gang.failed")
        self.assert_seen(failed, since)
        self.assert_answer(failed, "restart", 1, 4, rank=2, generation=1)
        self.wait_for_anew([2, 3])
        self.assert_go_on([0, 1])
        self.assert_nothing_done("host.suspect", "host.lost")
        self.assertEqual(self.monarch("stop", "--kill").status, 0)
        self.assert_nothing_left()


if __name__ == "__main__":
    harness.main()
