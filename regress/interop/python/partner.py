"""partner.py ADDRESS WORKFLOW: serves the steps `python` and `enough` until its input ends."""
import sys

from wiggle import WiggleClient, Worker

with WiggleClient(sys.argv[1]) as client:
    worker = Worker(client, "partner", long_poll_wait_s=1)
    worker.handle(sys.argv[2], "python", lambda context: {**context, "by": context["by"] + ["Python"]})
    worker.handle_gate(sys.argv[2], "enough", lambda context: "Python" in context["by"])
    with worker:
        sys.stdin.read()
