"""Relays: one between a proxy and a database that can lose answers on command, one in front of several proxies. And
what takes connections and never says a word."""
import selectors
import socket
import threading


class Relay:
    """Listens on 127.0.0.1; connections are relayed to 127.0.0.1:port.

    lose_next(marker): the next answer that follows a request holding the marker is swallowed and its
    connection closed: the database has done it, and nobody knows. With for_good nobody will: the relay
    takes no connection any more.
    """

    def __init__(self, port):
        self.target = port
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.lock = threading.Lock()
        self.marker = None
        self.for_good = False
        self.lost = 0
        self.closed = False
        threading.Thread(target=self._accept, daemon=True).start()

    def lose_next(self, marker, for_good=False):
        with self.lock:
            self.marker = marker
            self.for_good = for_good

    def close(self):
        self.closed = True
        self.listener.close()

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.target))

    def _accept(self):
        while not self.closed:
            try:
                client, _ = self.listener.accept()
                if self.for_good and self.lost > 0:
                    client.close()
                    continue
                server = self.connect()
            except OSError:
                continue
            threading.Thread(target=self._serve, args=(client, server), daemon=True).start()

    def _serve(self, client, server):
        doomed = False
        with client, server, selectors.DefaultSelector() as both:
            both.register(client, selectors.EVENT_READ, server)
            both.register(server, selectors.EVENT_READ, client)
            while not self.closed:
                for key, _ in both.select(0.5):
                    try:
                        data = key.fileobj.recv(65536)
                        if not data:
                            return
                        if key.fileobj is client:
                            with self.lock:
                                if self.marker is not None and self.marker in data:
                                    self.marker = None
                                    doomed = True
                        elif doomed:
                            # the answer is here, so the request has been carried out
                            self.lost += 1
                            return
                        key.data.sendall(data)
                    except OSError:
                        return


class Balancer(Relay):
    """What a Service of Kubernetes does: each connection goes to the next of these ports that takes one."""

    def __init__(self, ports):
        self.ports = list(ports)
        super().__init__(self.ports[0])

    def connect(self):
        for _ in self.ports:
            self.ports.append(self.ports.pop(0))
            try:
                return socket.create_connection(("127.0.0.1", self.ports[-1]))
            except OSError:
                continue
        raise ConnectionRefusedError("no port takes a connection")


class Deaf:
    """Connections to it are made by the kernel, and that is all."""

    def __init__(self, address="127.0.0.1", port=0):
        self.listener = socket.create_server((address, port))
        self.port = self.listener.getsockname()[1]

    def close(self):
        self.listener.close()
