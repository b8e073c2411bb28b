"""wiggle-go, Wiggle's own Go client: its newest release and the oldest that the scenarios can be built with."""


def column(name):
    def client(site):
        program = site.tool(name)
        return [program, "-example", program + "-example"]
    return client


CLIENTS = [("go newest", column("go-newest")), ("go oldest", column("go-oldest"))]
