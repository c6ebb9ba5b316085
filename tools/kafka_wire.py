"""The few Kafka requests that tools/kafka sends itself: ApiVersions, Metadata, CreateTopics, DeleteTopics.

Kafka's own admin commands do the same, but a JVM start costs a second or two each time and old and new
versions want different classes and options. The request versions here are those that every broker from
0.11 to 4.x knows. Written apart from crates/kafka on purpose: what prepares a test must not share the
faults of what is tested.
"""

import socket
import struct

API_NAMES = {0: "Produce", 3: "Metadata", 18: "ApiVersions", 19: "CreateTopics", 20: "DeleteTopics",
             22: "InitProducerId"}
ERRORS = {0: "NONE", 3: "UNKNOWN_TOPIC_OR_PARTITION", 5: "LEADER_NOT_AVAILABLE", 7: "REQUEST_TIMED_OUT",
          17: "INVALID_TOPIC", 36: "TOPIC_ALREADY_EXISTS", 37: "INVALID_PARTITIONS",
          38: "INVALID_REPLICATION_FACTOR", 40: "INVALID_CONFIG", 41: "NOT_CONTROLLER", 42: "INVALID_REQUEST"}


class WireError(Exception):
    pass


def string(text):
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def array(items):
    return struct.pack(">i", len(items)) + b"".join(items)


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, fmt):
        size = struct.calcsize(">" + fmt)
        values = struct.unpack_from(">" + fmt, self.data, self.at)
        self.at += size
        return values[0] if len(values) == 1 else values

    def string(self):
        size = self.take("h")
        if size < 0:
            return None
        self.at += size
        return self.data[self.at - size:self.at].decode()

    def array(self, item):
        return [item() for _ in range(max(self.take("i"), 0))]


def call(port, api, version, body, timeout=5.0):
    """One request to the broker on 127.0.0.1:`port`; a Reader on the answer's body."""
    head = struct.pack(">hhi", api, version, 1) + string("tools-kafka")
    with socket.create_connection(("127.0.0.1", port), timeout=timeout) as sock:
        sock.settimeout(timeout)
        sock.sendall(struct.pack(">i", len(head) + len(body)) + head + body)
        answer = b""
        while len(answer) < 4 or len(answer) < 4 + struct.unpack(">i", answer[:4])[0]:
            more = sock.recv(65536)
            if not more:
                raise WireError(f"the broker on port {port} closed the connection")
            answer += more
    return Reader(answer[8:])


def api_versions(port, timeout=5.0):
    """{api key: (min, max)}"""
    reader = call(port, 18, 0, b"", timeout)
    error = reader.take("h")
    if error:
        raise WireError(f"ApiVersions: error {error}")
    return {key: (low, high) for key, low, high in reader.array(lambda: reader.take("hhh"))}


def metadata(port, topics=None, timeout=5.0):
    """Metadata v1: brokers, controller and topics (all of them, or the named; never creates one)."""
    if topics is not None:
        # Version 1 of a named topic would create it where the broker allows that: ask for all instead.
        wanted = set(topics)
    reader = call(port, 3, 1, struct.pack(">i", -1), timeout)
    brokers = {}
    for _ in range(reader.take("i")):
        node, host, at = reader.take("i"), reader.string(), reader.take("i")
        brokers[node] = {"host": host, "port": at, "rack": reader.string()}
    controller = reader.take("i")

    def partition():
        error, index, leader = reader.take("hii")
        replicas, isr = reader.array(lambda: reader.take("i")), reader.array(lambda: reader.take("i"))
        return {"partition": index, "leader": leader, "replicas": replicas, "isr": isr, "error": error}

    found = {}
    for _ in range(reader.take("i")):
        error, name, _internal = reader.take("h"), reader.string(), reader.take("?")
        found[name] = {"error": error, "partitions": sorted(reader.array(partition),
                                                            key=lambda p: p["partition"])}
    if topics is not None:
        found = {name: value for name, value in found.items() if name in wanted}
    return {"brokers": brokers, "controller": controller, "topics": found}


def create_topics(port, topics, timeout_ms=10000):
    """CreateTopics v2 of [(name, partitions, replication, {setting: value})] -> {name: error code}."""
    wanted = [
        string(name) + struct.pack(">ih", partitions, replication) + array([])
        + array([string(key) + string(value) for key, value in settings.items()])
        for name, partitions, replication, settings in topics
    ]
    reader = call(port, 19, 2, array(wanted) + struct.pack(">i?", timeout_ms, False),
                  timeout_ms / 1000 + 5)
    reader.take("i")  # throttle time
    result = {}
    for _ in range(reader.take("i")):
        name, error, _message = reader.string(), reader.take("h"), reader.string()
        result[name] = error
    return result


def delete_topics(port, names, timeout_ms=10000):
    """DeleteTopics v1 -> {name: error code}."""
    reader = call(port, 20, 1, array([string(name) for name in names]) + struct.pack(">i", timeout_ms),
                  timeout_ms / 1000 + 5)
    reader.take("i")
    return {name: error for name, error in reader.array(lambda: (reader.string(), reader.take("h")))}


def error_name(code):
    return ERRORS.get(code, f"error {code}")
