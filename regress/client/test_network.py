"""Databases and proxies in networks of their own, of which some are cut off for a while.

The networks are made in a user namespace, without privileges; what runs in it is apart.py.
"""
import os
import subprocess
import sys
import unittest

import world
from harness import TREE

APART = ["unshare", "--user", "--map-current-user", "--net", "--keep-caps"]


class Network(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        probe = ("ip link add wgprobe type veth peer name wgpeer && ip rule add pref 9 to 10.99.0.1 blackhole"
                 " && echo 1 > /proc/sys/net/ipv4/ip_forward && exec unshare --net true")
        try:
            done = subprocess.run([*APART, "sh", "-ec", probe], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, check=False)
        except OSError as missing:
            raise unittest.SkipTest("no network namespaces: %s" % missing) from missing
        if done.returncode:
            raise unittest.SkipTest("no network namespaces here: %s" % " ".join(done.stdout.split()))

    def apart(self, test):
        argv = [*APART, sys.executable, os.path.join(TREE, "regress", "client", "apart.py"), world.AREA, test]
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout[-6000:])

    def test_a_shard_cut_off_and_healed(self):
        self.apart("a_shard_is_cut_off")

    def test_a_proxy_cut_off_from_home(self):
        self.apart("a_proxy_is_cut_off_from_home")
