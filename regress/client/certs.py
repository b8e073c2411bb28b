"""Certificates for tests, made by openssl."""
import os
import subprocess

import grpc


def openssl(*arguments, **more):
    return subprocess.run(["openssl", *arguments], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, **more).stdout


def read(path):
    with open(path, "rb") as f:
        return f.read()


class Identity:
    """A certificate and its key, in files of their own."""

    def __init__(self, stem):
        self.key, self.certificate, self.chain = stem + ".key", stem + ".crt", stem + ".chain"

    @property
    def serial(self):
        return openssl("x509", "-in", self.certificate, "-noout", "-serial").strip().split("=")[1]

    def both(self, path):
        """One PEM file with everything."""
        write_private(path, read(self.chain) + read(self.key))
        return path

    def pkcs12(self, path, password):
        openssl("pkcs12", "-export", "-inkey", self.key, "-in", self.chain, "-out", path, "-passout", "pass:" + password)
        os.chmod(path, 0o600)
        return path


def write_private(path, data):
    """As a whole or not at all, as one should change a certificate."""
    with open(path + ".new", "wb") as f:
        f.write(data)
    os.chmod(path + ".new", 0o600)
    os.replace(path + ".new", path)


class Authority:
    """A root and an authority below it, which issues."""

    def __init__(self, folder, name):
        os.makedirs(folder, exist_ok=True)
        self.folder = folder
        self.root = os.path.join(folder, "root.crt")
        self._key = os.path.join(folder, "root.key")
        self._below = Identity(os.path.join(folder, "below"))
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30",
                "-subj", "/CN=%s root" % name, "-keyout", self._key, "-out", self.root)
        self._sign(self._below, "/CN=%s" % name, "basicConstraints=critical,CA:true", self.root, self._key)

    def _sign(self, identity, subject, extensions, issuer, issuer_key):
        request = identity.certificate + ".csr"
        openssl("req", "-new", "-utf8", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", subject,
                "-keyout", identity.key, "-out", request)
        with open(request + ".ext", "w", encoding="ascii") as f:
            f.write(extensions)
        openssl("x509", "-req", "-in", request, "-CA", issuer, "-CAkey", issuer_key, "-days", "20",
                "-extfile", request + ".ext", "-out", identity.certificate)
        os.chmod(identity.key, 0o600)

    def issue(self, name, subject=None, hosts="DNS:localhost,IP:127.0.0.1"):
        identity = Identity(os.path.join(self.folder, name))
        self._sign(identity, subject or "/CN=" + name, "subjectAltName=" + hosts, self._below.certificate, self._below.key)
        with open(identity.chain, "wb") as f:
            f.write(read(identity.certificate) + read(self._below.certificate))
        return identity

    def credentials(self, identity=None):
        """gRPC's, for a client that trusts this authority."""
        if identity is None:
            return grpc.ssl_channel_credentials(read(self.root))
        return grpc.ssl_channel_credentials(read(self.root), read(identity.key), read(identity.chain))
