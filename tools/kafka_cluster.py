"""A Kafka cluster on this machine: its processes, its configuration, its start and its end."""

import contextlib
import fcntl
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import kafka_wire as wire
from kafka_jars import libs, number

JAVA = [
    "-XX:+UseSerialGC", "-XX:-UsePerfData", "-Xshare:auto", "-Djava.awt.headless=true",
    # Older brokers unmap index files and read fields of the JDK by reflection.
    "--add-opens", "java.base/java.nio=ALL-UNNAMED", "--add-opens", "java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-opens", "java.base/java.lang=ALL-UNNAMED", "--add-opens", "java.base/java.util=ALL-UNNAMED",
    # ZooKeeper 3.4 wants log4j 1's JMX beans, which Java 9 and later cannot give it.
    "-Dzookeeper.jmx.log4j.disable=true", "-Dzookeeper.admin.enableServer=false",
]
LOG4J = """log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.Target=System.err
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=[%d] %p %m (%c)%n
"""
LOG4J2 = """rootLogger.level=info
rootLogger.appenderRef.out.ref=out
appender.out.type=Console
appender.out.target=SYSTEM_ERR
appender.out.name=out
appender.out.layout.type=PatternLayout
appender.out.layout.pattern=[%d] %p %m (%c)%n
"""
# With these the broker writes down each request that it has answered: what it was really asked, not what
# the client says.
LOG_REQUESTS = {
    "log4j": "log4j.logger.kafka.request.logger=DEBUG\n",
    "log4j2": "logger.request.name=kafka.request.logger\nlogger.request.level=debug\n",
}
READY_WITHIN = 90.0


def fail(text):
    raise SystemExit(f"kafka: {text}")


# --- processes -------------------------------------------------------------------------------------


def birth(pid):
    """When process `pid` started, in clock ticks; None if it is gone. Tells a reused pid apart."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def alive(node):
    return bool(node.get("pid")) and birth(node["pid"]) == node["birth"]


def send(node, sig):
    if alive(node):
        with contextlib.suppress(ProcessLookupError):
            os.kill(node["pid"], sig)


def wait_gone(nodes, seconds):
    deadline = time.monotonic() + seconds
    while any(alive(node) for node in nodes) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not any(alive(node) for node in nodes)


def archive(version):
    """Where the classes of `version`, as this JVM has loaded them, are kept: that halves a broker's start.

    A dynamic archive of class data (JEP 350). The first broker of a version that is started writes it when
    it ends. Another JVM could not read it, so the JVM's own time stamp is in the name.
    """
    home = Path(shutil.which("java") or fail("there is no java here: `make deps` installs it")).resolve().parents[1]
    jvm = home / "lib" / "server" / "libjvm.so"
    stamp = int(jvm.stat().st_mtime) if jvm.exists() else 0
    return libs(version) / f"classes-{stamp}.jsa"


def java(version, directory, heap, main, *args, log_requests=False, options=()):
    kind = "log4j2" if number(version) >= (4,) else "log4j"
    log = directory / f"{kind}.properties"
    log.write_text({"log4j": LOG4J, "log4j2": LOG4J2}[kind] + (LOG_REQUESTS[kind] if log_requests else ""))
    logging = f"-Dlog4j2.configurationFile={log}" if kind == "log4j2" else f"-Dlog4j.configuration=file:{log}"
    kept = archive(version)
    shared = [f"-XX:SharedArchiveFile={kept}"] if kept.exists() else []
    return ["java", f"-Xmx{heap}", *JAVA, *shared, *options, logging, "-cp", f"{libs(version)}/*", main, *args]


def spawn(node, directory, command):
    with open(directory / "log", "a") as log:
        process = subprocess.Popen(command, cwd=directory, stdin=subprocess.DEVNULL, stdout=log,
                                   stderr=subprocess.STDOUT, start_new_session=True)
    node["pid"], node["birth"] = process.pid, birth(process.pid)
    return process


def free_ports(count):
    """Ports that nothing holds now, below the range of outgoing connections.

    From inside that range any client's connection could take a broker's port while the broker is down,
    and a client that keeps connecting to such a port in vain in the end connects to itself.
    """
    low = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    found = []
    while len(found) < count:
        port = random.randrange(10000, low) if low > 12000 else 0
        with socket.socket() as sock:
            try:
                sock.bind(("127.0.0.1", port))
            except OSError:
                continue
            port = sock.getsockname()[1]
        if port not in found:
            found.append(port)
    return found


def listens(node):
    """Whether the node's own process, not somebody else's, listens on the node's port."""
    inodes = set()
    for table in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == "0A" and int(fields[1].rpartition(":")[2], 16) == node["port"]:
                    inodes.add(f"socket:[{fields[9]}]")
    with contextlib.suppress(OSError):
        for link in Path(f"/proc/{node['pid']}/fd").iterdir():
            with contextlib.suppress(OSError):
                if os.readlink(link) in inodes:
                    return True
    return False


# --- one cluster -----------------------------------------------------------------------------------


class Cluster:
    """A cluster as DIR/cluster.json describes it."""

    def __init__(self, directory, state):
        self.directory, self.state = directory, state
        self.brokers, self.zookeeper = state["brokers"], state["zookeeper"]

    @classmethod
    def load(cls, directory):
        try:
            return cls(directory, json.loads((directory / "cluster.json").read_text()))
        except FileNotFoundError:
            fail(f"no cluster in {directory}")

    def save(self):
        partial = self.directory / "cluster.json.partial"
        partial.write_text(json.dumps(self.state, indent=1) + "\n")
        partial.rename(self.directory / "cluster.json")

    def chosen(self, ids):
        unknown = set(ids) - {broker["id"] for broker in self.brokers}
        if unknown:
            fail(f"no broker {min(unknown)} in {self.directory}")
        return [broker for broker in self.brokers if not ids or broker["id"] in ids]

    def bootstrap(self):
        return ",".join(f"127.0.0.1:{broker['port']}" for broker in self.brokers)

    def folder(self, broker):
        return self.directory / f"broker-{broker['id']}"

    # Configuration

    def settings(self, broker):
        copies = min(3, len(self.brokers))
        settings = {
            "listeners": "PLAINTEXT://127.0.0.1:{port}",
            "advertised.listeners": "PLAINTEXT://127.0.0.1:{port}",
            "log.dirs": "{dir}/data",
            "num.network.threads": 2,
            "num.io.threads": 4,
            "num.partitions": 1,
            "auto.create.topics.enable": "false",
            "delete.topic.enable": "true",
            # Records with old timestamps are what some tests write.
            "log.retention.ms": -1,
            # The default, 128 MB, does not fit into a small heap.
            "log.cleaner.dedupe.buffer.size": 8388608,
            "offsets.topic.num.partitions": 1,
            "offsets.topic.replication.factor": copies,
            "transaction.state.log.num.partitions": 1,
            "transaction.state.log.replication.factor": copies,
            "transaction.state.log.min.isr": 1,
            "group.initial.rebalance.delay.ms": 0,
        }
        if self.state["mode"] == "kraft":
            voters = ",".join(f"{b['id']}@127.0.0.1:{b['controller_port']}" for b in self.brokers)
            controller = f"CONTROLLER://127.0.0.1:{broker['controller_port']}"
            settings |= {
                "process.roles": "broker,controller",
                "node.id": "{id}",
                "controller.quorum.voters": voters,
                "controller.listener.names": "CONTROLLER",
                "listeners": settings["listeners"] + "," + controller,
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SSL:SSL,"
                                                  "SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL",
                # A killed broker is fenced, and its successor let in, after this long, not after 9 s.
                "broker.session.timeout.ms": 3000,
                "broker.heartbeat.interval.ms": 500,
            }
        else:
            settings |= {
                "broker.id": "{id}",
                "zookeeper.connect": f"127.0.0.1:{self.zookeeper['port']}",
                "zookeeper.session.timeout.ms": 6000,
                "zookeeper.connection.timeout.ms": 30000,
            }
            versions = sorted({b["version"] for b in self.brokers}, key=number)
            if len(versions) > 1:
                settings["inter.broker.protocol.version"] = ".".join(versions[0].split(".")[:2])
        settings |= self.state["settings"]

        def fill(match):
            key = match.group(1)
            if key.startswith("port") and key not in broker:
                broker[key] = free_ports(1)[0]
            return str({**broker, "dir": self.folder(broker)}[key])

        return {key: re.sub(r"\{(id|dir|port\d?|controller_port)\}", fill, str(value))
                for key, value in settings.items()}

    def write_properties(self, broker):
        folder = self.folder(broker)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "server.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in self.settings(broker).items()))
        return path

    # Start and stop

    def start_zookeeper(self):
        folder = self.directory / "zookeeper"
        folder.mkdir(parents=True, exist_ok=True)
        config = folder / "zk.properties"
        config.write_text(
            f"dataDir={folder}/data\nclientPort={self.zookeeper['port']}\nclientPortAddress=127.0.0.1\n"
            "tickTime=500\nmaxClientCnxns=0\nadmin.enableServer=false\n")
        version = min((b["version"] for b in self.brokers), key=number)
        process = spawn(self.zookeeper, folder, java(
            version, folder, "128m", "org.apache.zookeeper.server.quorum.QuorumPeerMain", str(config)))
        deadline = time.monotonic() + READY_WITHIN
        while time.monotonic() < deadline:
            if process.poll() is not None:
                raise Died(f"ZooKeeper exited with {process.returncode}", folder / "log")
            with contextlib.suppress(OSError):
                with socket.create_connection(("127.0.0.1", self.zookeeper["port"]), 2) as sock:
                    sock.sendall(b"srvr")
                    if b"Mode: standalone" in sock.recv(4096) and listens(self.zookeeper):
                        return
            time.sleep(0.1)
        raise Died("ZooKeeper does not answer", folder / "log")

    def format(self, broker):
        path = self.write_properties(broker)
        folder = self.folder(broker)
        result = subprocess.run(
            java(broker["version"], folder, "128m", "kafka.tools.StorageTool", "format",
                 "-t", self.state["cluster_id"], "-c", str(path), *self.state["format"]),
            cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if result.returncode:
            fail(f"formatting the storage of broker {broker['id']} failed:\n{result.stdout}{result.stderr}")

    def start_broker(self, broker):
        folder = self.folder(broker)
        # The optimising compiler costs more than it gives in the life of a test's broker.
        options = [] if self.state["full_jit"] else ["-XX:TieredStopAtLevel=1"]
        broker.pop("archive", None)
        if broker is self.brokers[0] and not archive(broker["version"]).exists():
            broker["archive"] = str(folder / "classes.jsa")
            options.append(f"-XX:ArchiveClassesAtExit={broker['archive']}")
        return spawn(broker, folder, java(broker["version"], folder, self.state["heap"], "kafka.Kafka",
                                          str(folder / "server.properties"),
                                          log_requests=self.state["log_requests"], options=options))

    def start_brokers(self, brokers, seen_by_all=False):
        """Starts brokers and waits until each answers and has itself (or all) in its metadata."""
        running = {broker["id"]: self.start_broker(broker) for broker in brokers}
        self.save()
        wanted = {broker["id"] for broker in brokers} if seen_by_all else set()
        waiting, deadline = list(brokers), time.monotonic() + READY_WITHIN
        while waiting:
            for broker in list(waiting):
                process = running[broker["id"]]
                if process.poll() is not None:
                    log = self.folder(broker) / "log"
                    # A broker that was killed is still in ZooKeeper until its session there ends; its
                    # successor finds the name taken and exits.
                    taken = re.search("NodeExists|node already exists|is already registered", tail(log, 200))
                    if self.zookeeper and taken and time.monotonic() < deadline:
                        time.sleep(1)
                        running[broker["id"]] = self.start_broker(broker)
                        self.save()
                        continue
                    raise Died(f"broker {broker['id']} exited with {process.returncode}", log)
                with contextlib.suppress(OSError, wire.WireError):
                    if listens(broker) and wire.api_versions(broker["port"]):
                        known = wire.metadata(broker["port"])
                        if known["controller"] >= 0 and known["brokers"].keys() >= wanted | {broker["id"]}:
                            waiting.remove(broker)
            if waiting and time.monotonic() > deadline:
                raise Died(f"broker {waiting[0]['id']} does not answer", self.folder(waiting[0]) / "log")
            time.sleep(0.1)

    def stop(self, patience=10.0):
        nodes = list(self.brokers)
        writers = [broker for broker in nodes if "archive" in broker and alive(broker)]
        if writers:
            patience = 20.0
        for node in nodes:
            send(node, signal.SIGTERM)
            send(node, signal.SIGCONT)
        ended = wait_gone(nodes, patience)
        if not ended:
            for node in nodes:
                send(node, signal.SIGKILL)
        # ZooKeeper last: a broker that loses it does not exit on SIGTERM. It has nothing to save.
        for node in nodes + ([self.zookeeper] if self.zookeeper else []):
            send(node, signal.SIGKILL)
        wait_gone(nodes + ([self.zookeeper] if self.zookeeper else []), 10)
        # One that was killed has perhaps not written all of it.
        for broker in writers if ended else []:
            with contextlib.suppress(OSError):
                partial = archive(broker["version"]).with_suffix(f".{os.getpid()}")
                shutil.copy(broker["archive"], partial)
                partial.rename(archive(broker["version"]))

    def any_port(self):
        for broker in self.brokers:
            if alive(broker):
                return broker["port"]
        fail(f"no broker of {self.directory} is running")


class Died(Exception):
    def __init__(self, what, log):
        super().__init__(what)
        self.log = log


def tail(path, lines):
    with contextlib.suppress(OSError):
        return "\n".join(path.read_text(errors="replace").splitlines()[-lines:])
    return ""


@contextlib.contextmanager
def locked(directory):
    """One command at a time changes a cluster."""
    directory.mkdir(parents=True, exist_ok=True)
    with open(directory / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
