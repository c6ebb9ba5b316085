"""An nginx with nginx-conf/demo.conf, three requests to it, and their records as kcat reads them."""

import json
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KAFKA = str(ROOT / "tools" / "kafka")
CLIENT_ID = "nginx"
TOPICS = ["orders:3", "metrics-web", "clicks"]

# (what it shows, arguments of curl, path, status, the answer with {partition} of the record, the record)
REQUESTS = [
    ("the body becomes a record; its key comes from the query string",
     ["-d", '{"order":1001,"total":42.50}'], "/orders?customer=c-17", 200,
     '{"message":"message sent","topic":"orders","partition":{partition},"offset":{offset}}',
     {"topic": "orders", "key": "c-17", "payload": '{"order":1001,"total":42.50}', "headers": []}),
    ("the topic comes from the URI, and must be allowed",
     ["-d", "cpu=0.93"], "/topics/metrics-web", 200,
     '{"message":"message sent","topic":"metrics-web","partition":{partition},"offset":{offset}}',
     {"topic": "metrics-web", "key": None, "payload": "cpu=0.93", "headers": []}),
    ("async: answered before Kafka has it; with record headers",
     ["-A", "demo/1.0", "-d", '{"x":10,"y":20}'], "/click?page=/home", 202,
     '{"message":"message queued"}',
     {"topic": "clicks", "key": None, "payload": '{"x":10,"y":20}',
      "headers": ["page", "/home", "user-agent", "demo/1.0"]}),
]


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


class Nginx:
    """nginx in a folder of its own, on a free port, stopped by its pid."""

    def __init__(self, folder, bootstrap):
        self.folder, self.port = folder, free_port()
        for name in ("conf", "logs", "modules", "temp"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / "modules" / "ngx_http_kafka_module.so").symlink_to(ROOT / "build" / "ngx_http_kafka_module.so")
        text = (ROOT / "nginx-conf" / "demo.conf").read_text()
        text = text.replace("127.0.0.1:9092", " ".join(bootstrap.split(",")))
        text = text.replace("127.0.0.1:8080", f"127.0.0.1:{self.port}")
        # A distribution's nginx would write into /var.
        temp = "".join(f"    {name}_temp_path {folder}/temp/{name};\n"
                       for name in ("client_body", "proxy", "fastcgi", "scgi", "uwsgi"))
        text = re.sub(r"^http \{\n", "http {\n" + temp, text, flags=re.M)
        (folder / "conf" / "nginx.conf").write_text(text)
        self.error_log = folder / "logs" / "error.log"
        self.process = subprocess.Popen(
            [str(ROOT / "build" / "nginx"), "-e", str(self.error_log), "-p", f"{folder}/",
             "-c", "conf/nginx.conf", "-g", "daemon off;"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=open(folder / "logs" / "stderr", "wb"),
            start_new_session=True)
        deadline = time.monotonic() + 20
        while True:
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                sys.exit("nginx does not start:\n" + (folder / "logs" / "stderr").read_text())
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                time.sleep(0.05)

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGQUIT)
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                self.process.terminate()
                self.process.wait(15)


def curl(nginx, request):
    """(the command as a person would type it, status, body)"""
    _, arguments, path, *_ = request
    command = ["curl", *arguments, f"http://127.0.0.1:{nginx.port}{path}"]
    done = subprocess.run([*command[:1], "-sS", "-m", "40", "-w", "\n%{http_code}", *command[1:]],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True)
    body, _, status = done.stdout.rpartition("\n")
    return shlex.join(command), int(status or 0), body or done.stderr.strip()


def records(bootstrap, topic, seconds=15):
    """The topic's records by kcat; waits for the first one."""
    deadline = time.monotonic() + seconds
    while True:
        done = subprocess.run(["kcat", "-C", "-b", bootstrap, "-t", topic, "-e", "-q", "-J"],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30)
        found = [json.loads(line) for line in done.stdout.splitlines()]
        if found or time.monotonic() > deadline:
            return found
        time.sleep(0.2)


def wrong(request, status, body, found):
    """What is not as it should be with an answer and the topic's records; None if all is well."""
    *_, wanted_status, wanted_body, wanted = request
    if status != wanted_status:
        return f"status {status}, not {wanted_status}"
    if len(found) != 1:
        return f"{len(found)} records in {wanted['topic']}, not 1"
    record = found[0]
    for name, value in wanted.items():
        # kcat leaves out what is empty.
        if (record.get(name) or (None if name == "key" else [])) != value:
            return f"{name} {record.get(name)!r}, not {value!r}"
    for name in ("partition", "offset"):
        wanted_body = wanted_body.replace("{%s}" % name, str(record[name]))
    if body != wanted_body:
        return f"the answer {body}, not {wanted_body}"
    return None
