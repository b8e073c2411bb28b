"""The programs of wiggle-client's README, as the installed package carries it, and of
docs/clients.md, unchanged.

They ask localhost:8080, which leads to our proxy here, and name functions that a reader
is to write: those are here.
"""
import importlib.metadata
import os
import re

import wiggle


def blocks():
    text = importlib.metadata.metadata("wiggle-client").get_payload()
    with open(os.path.join(os.path.dirname(__file__), "..", "..", "..", "docs", "clients.md"), encoding="utf-8") as f:
        text += f.read()
    return re.findall(r"```python\n(.*?)```", text, re.S)


def given(**more):
    return lambda context: {**context, **more}


READER = {
    "charge": given(paymentRef="auth"), "validate": given(status="VALIDATED"), "reserve": given(reserved=True),
    "label": given(label="DHL"), "concierge": given(served="concierge"), "thanks": given(served="thanks"),
    "notify": given(notified=True), "summarise": given(summarised=True),
}


def programs(address):
    class Client(wiggle.WiggleClient):
        def __init__(self, target):
            assert target == "localhost:8080", target
            super().__init__(address)
            views.clear()

        def await_completion(self, *arguments, **more):
            view = super().await_completion(*arguments, **more)
            views.append(view)
            return view
    views, names = [], {}

    def run(marker, **more):
        """Execute the block that has this text; the names it leaves behind."""
        code = next((b for b in blocks() if marker in b), None)
        assert code is not None, "no program has %r" % marker
        names.clear()
        names.update(READER, **more)
        kept, wiggle.WiggleClient = wiggle.WiggleClient, Client
        names.update({name: getattr(wiggle, name) for name in wiggle.__all__})
        try:
            exec(compile(code, "README", "exec"), names)
        finally:
            wiggle.WiggleClient = kept
        return names

    def serve(flow, context, expected):
        with Client("localhost:8080") as client, wiggle.Worker(client, "readme", long_poll_wait_s=1).register(flow):
            # Two programs give one name to two graphs, of which the highest version is not always this one.
            view = client.await_completion(client.start(flow, context, version=flow.version))
        assert (view.status, view.context) == ("COMPLETED", expected), view

    def quick_start():
        run("WiggleClient(\"localhost:8080\")")
        assert [(v.status, v.context) for v in views] == [("COMPLETED", {
            "orderId": "A-1", "quantity": 3, "status": "VALIDATED", "paymentRef": "auth"})], views

    def fork_and_choose():
        flow = run("Case.when(\"vip\"")["wf"]
        base = {"status": "VALIDATED", "paymentRef": "auth", "reserved": True, "label": "DHL", "notified": True}
        serve(flow, {"vip": True}, {**base, "vip": True, "served": "concierge"})
        serve(flow, {}, {**base, "served": "thanks"})

    def each():
        flow = run("fork_each(\"charge-items\"")["wf"]
        serve(flow, {"items": [1, 2, 3]}, {"items": [1, 2, 3], "priced-0": 10, "priced-1": 20, "priced-2": 30, "summarised": True})
        serve(flow, {"items": []}, {"items": [], "summarised": True})

    def by_name():
        flow = wiggle.Workflow("order-fulfilment").step("charge", lambda o: o, queue="tills").build()
        with Client("localhost:8080") as client:
            client.register(flow)
            worker = run(".handle(", client=client)["worker"]
            try:
                view = client.await_completion(client.start(flow, {"orderId": "A-2"}))
            finally:
                worker.stop()
        assert (view.status, view.context) == ("COMPLETED", {"orderId": "A-2", "paymentRef": "auth-A-2"}), view

    def page():
        view = run("hello-python")["view"]
        assert (view.status, view.context) == ("COMPLETED", {"name": "ada", "said": "hello, ada"}), view
    return {"README: quick start": quick_start, "README: fork and choose": fork_and_choose,
            "README: fork_each": each, "README: handlers by name": by_name,
            "docs/clients.md": page}
