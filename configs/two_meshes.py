"""What the meshes of two-meshes.yaml run: a store that counts steps, trainers that report them, a monitor that looks on."""

import http.server
import os
import signal
import sys
import time
import urllib.error
import urllib.request


def store(port, trainers):
    """Ends when every trainer has."""
    reports = []

    class Handler(http.server.BaseHTTPRequestHandler):
        timeout = 5  # whoever connects and says nothing

        def do_POST(self):
            reports.append(self.path)
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            pass

    with http.server.HTTPServer(("", port), Handler) as server:
        while reports.count("/done") < trainers:
            server.handle_request()
    print(f"{reports.count('/step')} steps of {trainers} trainers", flush=True)


def train(address, name):
    def report(what):
        request = urllib.request.Request(f"{address}/{what}", data=b"", method="POST")
        deadline = time.monotonic() + 30
        while True:
            try:
                return urllib.request.urlopen(request, timeout=30).close()
            except urllib.error.URLError:  # the store is not listening yet
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    for _ in range(int(os.environ["STEPS"])):
        report("step")
    print(f"{name} is done", flush=True)
    report("done")


def monitor():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    while True:
        signal.pause()


def main():
    what, *rest = sys.argv[1:]
    if what == "store":
        store(int(rest[0]), int(rest[1]))
    elif what == "train":
        train(*rest)
    else:
        monitor()


if __name__ == "__main__":
    main()
