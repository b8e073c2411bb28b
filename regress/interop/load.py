"""ghz and h2load: many calls at once, none lost. What they measure is not judged."""
import json
import re


def ghz(site):
    text = site.run("ghz", "--insecure", "--call", "com.wiggle.proto.WiggleControlPlane.HealthCheck", "-n", "20000",
                    "-c", "50", "--connections", "5", "-O", "json", site.address)
    report = json.loads(text)
    assert report["statusCodeDistribution"] == {"OK": 20000}, report["statusCodeDistribution"]
    return "%d calls/s" % report["rps"]


def ghz_polls(site):
    """Long polls that nobody serves: each is answered empty, not refused."""
    data = json.dumps({"workerId": "w", "queues": ["nobody"], "waitMillis": 200})
    text = site.run("ghz", "--insecure", "--call", "com.wiggle.proto.WiggleControlPlane.PollTasks", "-n", "2000",
                    "-c", "500", "--connections", "5", "-d", data, "-O", "json", site.address)
    report = json.loads(text)
    assert report["statusCodeDistribution"] == {"OK": 2000}, report["statusCodeDistribution"]


def h2load(site):
    with open("empty", "wb") as f:
        f.write(b"\0\0\0\0\0")
    text = site.run("h2load", "-n", "50000", "-c", "10", "-m", "50", "-d", "empty", "-H", "te: trailers",
                    "-H", "content-type: application/grpc",
                    "http://%s/com.wiggle.proto.WiggleControlPlane/HealthCheck" % site.address)
    counts = re.search(r"requests: 50000 total, 50000 started, 50000 done, 50000 succeeded, 0 failed, 0 errored", text)
    assert counts and "status codes: 50000 2xx" in text, text
    return re.search(r"[\d.]+ req/s", text).group()


CHECKS = [
    ("ghz: 20,000 calls, 50 at once", ghz),
    ("ghz: 2,000 long polls, 500 at once", ghz_polls),
    ("h2load: 50,000 calls, 10 connections of 50 streams", h2load),
]
