"""holder.py ADDRESS WORKFLOW STEP: a worker that takes a step, says whose it is and never ends it."""
import sys
import threading

from wiggle import WiggleClient, Worker


class Telling(Worker):
    def _run(self, task):
        print(task.instance_id, flush=True)
        super()._run(task)


client = WiggleClient(sys.argv[1])
Telling(client, "holder", lease_s=2).handle(sys.argv[2], sys.argv[3], lambda context: threading.Event().wait()).run_forever()
