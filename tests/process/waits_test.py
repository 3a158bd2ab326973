"""Waits without a deadline: it is said every 30 s who waits for whom, and what an operator can do."""

import harness
import recovery

REMINDED_S = 90  # after 30 s, on a machine that may be busy


class Waits(recovery.RecoveryTest):
    def reminders(self, kind, words):
        return [e["message"] for e in self.events(kind) if words in e["message"]]

    def test_a_gang_that_waits_for_a_drained_host_says_so_until_that_may_be_used_again(self):
        # Each rank is a gang; that of rank 1 goes on where nothing new may start, so that of rank 0 can go nowhere.
        run = self.running(hosts=1, mesh={"gang": "each"}, local={"hosts": 2, "spares": 1}, reallocate={"max": 4})
        job, = self.jobs()
        self.assertEqual(self.monarch("hold", "--rank", "1").status, 0)
        self.assertEqual(self.monarch("drain", "v1").status, 0)
        self.kill_rank(0)
        said = harness.wait_for(lambda: self.reminders("gang.waiting", "has waited"), self.supervisor_log, REMINDED_S)[0]
        self.assertRegex(said, r"^m: gang 0 has waited 30(\.\d+)?s for v1 \(drained, asked by .*; what else runs there has not ended\); there is no deadline: ")
        self.assertIn(f"`monarch undrain {job} v1` lets it be used again", said)
        self.assertIn(f"`monarch stop {job}` ends the job", said)
        self.assertRegex(self.reminders("ranks.held", "left alone")[0],
                         rf"^1 rank has been left alone for .*: m/1; there is no deadline, .*`monarch hold {job} --release`")
        self.assert_go_on([1])
        self.assertEqual(self.monarch("undrain", job, "v1").status, 0)
        self.wait_for_anew([0])
        self.end_well(run)

    def kill_rank(self, rank):
        self.signal_by_pid(self.pids[rank])


if __name__ == "__main__":
    harness.main()
