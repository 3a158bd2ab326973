"""Is interrupted in a terminal, and still says goodbye to its actors."""

import time

from monarch.actor import Actor, endpoint, this_host


class Guest(Actor):
    @endpoint
    def nap(self):
        time.sleep(2)

    @endpoint
    def bye(self):
        return "bye"


if __name__ == "__main__":
    procs = this_host().spawn_procs({"g": 2})
    guests = procs.spawn("guests", Guest)
    try:
        print(guests.slice(g=1).bye.call_one().get(), "at first", flush=True)
        guests.slice(g=0).nap.call_one().get()
    except KeyboardInterrupt:
        print(guests.slice(g=1).bye.call_one().get(), flush=True)
