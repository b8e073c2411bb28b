"""Just enough of libpq for a test worker: text parameters in, text rows out."""
import ctypes
import ctypes.util

_pq = ctypes.CDLL(ctypes.util.find_library("pq"))
for _name, _result, _arguments in (
        ("PQconnectdb", ctypes.c_void_p, [ctypes.c_char_p]),
        ("PQstatus", ctypes.c_int, [ctypes.c_void_p]),
        ("PQfinish", None, [ctypes.c_void_p]),
        ("PQerrorMessage", ctypes.c_char_p, [ctypes.c_void_p]),
        ("PQbackendPID", ctypes.c_int, [ctypes.c_void_p]),
        ("PQexecParams", ctypes.c_void_p,
         [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_void_p,
          ctypes.POINTER(ctypes.c_char_p), ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int]),
        ("PQresultStatus", ctypes.c_int, [ctypes.c_void_p]),
        ("PQresultErrorField", ctypes.c_char_p, [ctypes.c_void_p, ctypes.c_int]),
        ("PQresultErrorMessage", ctypes.c_char_p, [ctypes.c_void_p]),
        ("PQntuples", ctypes.c_int, [ctypes.c_void_p]),
        ("PQnfields", ctypes.c_int, [ctypes.c_void_p]),
        ("PQfname", ctypes.c_char_p, [ctypes.c_void_p, ctypes.c_int]),
        ("PQgetisnull", ctypes.c_int, [ctypes.c_void_p, ctypes.c_int, ctypes.c_int]),
        ("PQgetvalue", ctypes.c_char_p, [ctypes.c_void_p, ctypes.c_int, ctypes.c_int]),
        ("PQsetNoticeReceiver", ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]),
        ("PQclear", None, [ctypes.c_void_p])):
    getattr(_pq, _name).restype = _result
    getattr(_pq, _name).argtypes = _arguments

# What a server says to a session that it ends concerns nobody here.
_QUIET = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(lambda argument, result: None)
_OK = (1, 2)                    # PGRES_COMMAND_OK, PGRES_TUPLES_OK
_SQLSTATE = ord("C")


class Lost(Exception):
    """The connection is gone; whether the statement was applied is unknown."""


class Refused(Exception):
    def __init__(self, sqlstate, message):
        super().__init__("%s: %s" % (sqlstate, message))
        self.sqlstate = sqlstate


class Connection:
    """Used by one thread; opened when first needed and anew after a loss."""

    def __init__(self, conninfo):
        self.conninfo = conninfo.encode()
        self.handle = None

    def close(self):
        if self.handle:
            _pq.PQfinish(self.handle)
        self.handle = None

    def _open(self):
        if self.handle is None:
            self.handle = _pq.PQconnectdb(self.conninfo)
        if _pq.PQstatus(self.handle) != 0:
            message = _pq.PQerrorMessage(self.handle).decode()
            self.close()
            raise Lost(message)
        _pq.PQsetNoticeReceiver(self.handle, ctypes.cast(_QUIET, ctypes.c_void_p), None)

    @property
    def pid(self):
        return _pq.PQbackendPID(self.handle) if self.handle else 0

    def rows(self, sql, *parameters):
        """Run one statement; each row as a dict of text or None."""
        self._open()
        values = (ctypes.c_char_p * max(len(parameters), 1))(
            *[None if p is None else str(p).encode() for p in parameters])
        result = _pq.PQexecParams(self.handle, sql.encode(), len(parameters), None, values, None, None, 0)
        try:
            if _pq.PQresultStatus(result) in _OK:
                names = [_pq.PQfname(result, c).decode() for c in range(_pq.PQnfields(result))]
                return [{name: None if _pq.PQgetisnull(result, r, c) else _pq.PQgetvalue(result, r, c).decode()
                         for c, name in enumerate(names)} for r in range(_pq.PQntuples(result))]
            state = _pq.PQresultErrorField(result, _SQLSTATE)
            message = (_pq.PQresultErrorMessage(result) or b"").decode().strip()
        finally:
            _pq.PQclear(result)
        if _pq.PQstatus(self.handle) != 0 or state is None or state.decode().startswith("57P"):
            self.close()
            raise Lost(message)
        raise Refused(state.decode(), message)
