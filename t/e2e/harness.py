"""What the end-to-end tests share: nginx, Kafka, load, and checks that are counted.

The environment that t/run sets:
  TEST_NGINX_BINARY         nginx                          (default: build/nginx)
  TEST_NGINX_KAFKA_MODULE   ngx_http_kafka_module.so       (default: build/…)
  TEST_NGINX_KAFKA_PORT     a running Kafka, of which nothing is killed (else the test starts its own)
  KAFKA_VERSION             for the brokers that a test starts for itself
"""
import atexit
import collections
import contextlib
import ctypes
import http.client
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.environ.get('TEST_NGINX_BINARY') or str(ROOT / 'build/nginx')
MODULE = os.environ.get('TEST_NGINX_KAFKA_MODULE') or str(ROOT / 'build/ngx_http_kafka_module.so')
KAFKA_VERSION = os.environ.get('KAFKA_VERSION') or '4.4.0'

_passed = _failed = 0


def check(name, good, detail=''):
    """One assertion. Goes on after a failure, so that one run shows all of them."""
    global _passed, _failed
    if good:
        _passed += 1
    else:
        _failed += 1
    print(f'{"ok" if good else "NOT OK"} - {name}' + (f': {detail}' if detail and not good else ''), flush=True)
    return bool(good)


def note(*words):
    print('  ', *words, flush=True)


def finish():
    print(f'{_passed} passed, {_failed} failed', flush=True)
    sys.exit(1 if _failed or not _passed else 0)


def eventually(condition, seconds=10.0, every=0.05):
    """The first true value of condition, or its last false one."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value or time.monotonic() > end:
            return value
        time.sleep(every)


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


def die_with_parent():
    """PR_SET_PDEATHSIG, SIGTERM: a killed test leaves nothing behind."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)


_directories = []


def directory():
    path = pathlib.Path(tempfile.mkdtemp(prefix='nginx-kafka-e2e-'))
    _directories.append(path)
    return path


@atexit.register
def _remove_directories():
    if not os.environ.get('E2E_KEEP') and not _failed:
        for path in _directories:
            shutil.rmtree(path, ignore_errors=True)


class Nginx:
    """One nginx with the module. `http` stands in the http block, `server` in the server block."""

    def __init__(self, http, server, main='', workers=1, http2=False, binary=BINARY, module=MODULE, command=()):
        self.binary, self.module, self.command = binary, module, list(command)
        self.dir, self.port = directory(), free_port()
        for name in ('conf', 'logs', 'html'):
            (self.dir / name).mkdir()
        self.configure(http, server, main, workers, http2)
        self.process = None

    def version(self):
        text = subprocess.run([self.binary, '-v'], capture_output=True, text=True).stderr
        return tuple(int(n) for n in re.search(r'/(\d+)\.(\d+)\.(\d+)', text).groups())

    def configure(self, http, server, main='', workers=1, http2=False):
        temp = ' '.join(f'{name}_temp_path {self.dir}/{name};'
                        for name in ('client_body', 'proxy', 'fastcgi', 'scgi', 'uwsgi'))
        old = http2 and self.version() < (1, 25, 1)
        (self.dir / 'conf/nginx.conf').write_text(f'''
load_module {self.module};
daemon off;
worker_processes {workers};
error_log {self.dir}/logs/error.log info;
pid {self.dir}/logs/nginx.pid;
{'' if os.getuid() else 'user root;'}
{main}
events {{ worker_connections 1024; }}
http {{
    access_log off;
    {temp}
    keepalive_requests 1000000000;
    client_max_body_size 30m;
{http}
    server {{
        listen 127.0.0.1:{self.port}{' http2' if old else ''}{' reuseport' if workers > 1 else ''};
        {'http2 on;' if http2 and not old else ''}
        location = /plain {{ return 200 "plain\\n"; }}
{server}
    }}
}}
''')

    def start(self):
        self.process = subprocess.Popen(
            self.command + [self.binary, '-e', f'{self.dir}/logs/error.log', '-p', f'{self.dir}/',
                            '-c', f'{self.dir}/conf/nginx.conf'],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=open(self.dir / 'stderr', 'wb'),
            preexec_fn=die_with_parent)
        atexit.register(self.kill)

        def up():
            if self.process.poll() is not None:
                raise SystemExit(f'nginx does not start: {(self.dir / "stderr").read_text()}')
            with contextlib.suppress(OSError), socket.create_connection(('127.0.0.1', self.port), 1):
                return True
        if not eventually(up, 20):
            raise SystemExit('nginx does not listen')
        return self

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()

    def send(self, number):
        self.process.send_signal(number)

    def reload(self):
        self.send(signal.SIGHUP)

    def stop(self, number=signal.SIGQUIT, seconds=60):
        """Ends nginx; the time that took."""
        if self.process is None or self.process.poll() is not None:
            return 0.0
        begin = time.monotonic()
        self.send(number)
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            check('nginx leaves after the signal', False, f'still there after {seconds} s')
            self.kill()
        return time.monotonic() - begin

    def kill(self):
        if self.process is not None and self.process.poll() is None:
            for pid in self.workers():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self.process.kill()
            self.process.wait()

    def workers(self):
        """Pids of the workers, also those that are shutting down."""
        try:
            children = pathlib.Path(f'/proc/{self.process.pid}/task/{self.process.pid}/children').read_text()
        except FileNotFoundError:
            return []
        return [int(pid) for pid in children.split()]

    def log(self):
        return (self.dir / 'logs/error.log').read_text(errors='replace')

    def healthy(self, name=''):
        """Nothing of what must never stand in the log."""
        bad = [line for line in self.log().splitlines()
               if re.search(r'\[(alert|emerg|crit)\]|exited on signal|panicked', line)]
        check(f'{name or "nginx"}: no alert, no crash', not bad, '\n'.join(bad[:5]))

    def post(self, path, body=b'', headers=None, method='POST', timeout=60):
        connection = http.client.HTTPConnection('127.0.0.1', self.port, timeout=timeout)
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, answer.read(), answer.headers
        finally:
            connection.close()


class Kafka:
    """A broker of the test's own, so that it may be killed or frozen: tools/kafka starts it."""

    def __init__(self, version=KAFKA_VERSION, settings=(), brokers=1):
        self.version, self.settings, self.brokers = version, settings, brokers
        self.dir, self.port = directory() / 'kafka', None
        atexit.register(self.stop)

    def tool(self, command, *arguments, timeout=240):
        done = subprocess.run([str(ROOT / 'tools/kafka'), command, *map(str, arguments)],
                              capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL)
        if done.returncode:
            raise SystemExit(f'tools/kafka {command}: {done.stdout}{done.stderr}')
        return done.stdout

    def start(self):
        options = [word for setting in self.settings for word in ('-o', setting)]
        bootstrap = self.tool('start', self.version, self.dir, '--owner', os.getpid(), '--brokers', self.brokers, *options)
        self.ports = [int(server.rsplit(':', 1)[1]) for server in bootstrap.split()[-1].split(',')]
        self.port = self.ports[0]
        return self

    def stop(self):
        if self.dir.exists():
            self.tool('stop', self.dir, '--now')

    def create_topics(self, *names):
        """Each NAME or NAME:PARTITIONS."""
        self.tool('create-topic', self.dir, *names)

    def kill(self):
        self.tool('kill', self.dir)

    def restart(self):
        self.tool('restart', self.dir)

    def freeze(self):
        """SIGSTOP: connections stay open, nothing is answered."""
        self.tool('pause', self.dir)

    def thaw(self):
        self.tool('resume', self.dir)

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()


class Log:
    """What is in Kafka, as kcat (librdkafka) reads it."""

    def __init__(self, port):
        self.port = port

    def read(self, topic, form='%s', start='beginning', timeout=120, extra=()):
        """The records of a topic, each as `form` says, as bytes."""
        # Values may hold any byte: no separator of one character would do.
        separator = os.urandom(12).hex()
        done = subprocess.run(
            ['kcat', '-C', '-q', '-b', f'127.0.0.1:{self.port}', '-X', 'fetch.wait.max.ms=20', '-t', topic,
             '-o', str(start), '-e', '-f', form + separator, *extra],
            capture_output=True, timeout=timeout)
        if done.returncode:
            raise RuntimeError(done.stderr.decode(errors='replace'))
        return done.stdout.split(separator.encode())[:-1]

    def count(self, topic):
        return collections.Counter(self.read(topic))

    def record(self, topic, partition, offset):
        """The value at exactly these coordinates."""
        return self.read(topic, start=offset, extra=['-p', str(partition), '-c', '1'])[0]


class Load:
    """Clients that post unique ids over keepalive connections, one request at a time each.

    results: id → status, or None where the connection ended without an answer. Threads suffice: what
    is looked for is loss, not speed."""

    def __init__(self, port, path, connections=8, prefix='', rate=None):
        self.port, self.path, self.prefix = port, path, prefix
        self.results, self.times, self.gap = {}, [], connections / rate if rate else 0
        self.stopping = threading.Event()
        self.threads = [threading.Thread(target=self.client, args=(n,), daemon=True) for n in range(connections)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        self.stopping.set()
        for thread in self.threads:
            thread.join(90)

    def client(self, number):
        connection, serial = None, 0
        while not self.stopping.is_set():
            serial += 1
            name = f'{self.prefix}{number}-{serial}'
            begin = time.monotonic()
            try:
                if connection is None:
                    connection = http.client.HTTPConnection('127.0.0.1', self.port, timeout=60)
                    connection.connect()
                    connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self.results[name] = None
                connection.request('POST', self.path, name.encode())
                answer = connection.getresponse()
                body = answer.read()
                self.results[name] = answer.status
                self.times.append((begin, time.monotonic() - begin, answer.status, body))
                if answer.will_close:
                    connection.close()
                    connection = None
            except (OSError, http.client.HTTPException):
                if connection is not None:
                    connection.close()
                connection = None
                time.sleep(0.01)
            if self.gap:
                time.sleep(self.gap)

    def by_status(self):
        return collections.Counter(self.results.values())

    def acknowledged(self):
        return [name for name, status in self.results.items() if status and 200 <= status < 300]


def nothing_lost(name, load, counted):
    """Every acknowledged record exactly once, no other twice."""
    acknowledged = load.acknowledged()
    missing = [one for one in acknowledged if counted[one.encode()] == 0]
    doubled = [one for one, times in counted.items() if times > 1]
    check(f'{name}: {len(acknowledged)} acknowledged records are all there', not missing, f'{len(missing)} missing: {missing[:5]}')
    check(f'{name}: none of {len(counted)} twice', not doubled, f'{len(doubled)} doubled: {doubled[:5]}')


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def rss(pid):
    """Resident bytes of a process."""
    return int(pathlib.Path(f'/proc/{pid}/statm').read_text().split()[1]) * os.sysconf('SC_PAGE_SIZE')


def connections_to(pid, port):
    """Established TCP connections of a process to a port, from /proc/net/tcp."""
    inodes = set()
    for fd in pathlib.Path(f'/proc/{pid}/fd').iterdir():
        with contextlib.suppress(OSError):
            target = os.readlink(fd)
            if target.startswith('socket:['):
                inodes.add(target[8:-1])
    count = 0
    for table in ('/proc/net/tcp', '/proc/net/tcp6'):
        for line in pathlib.Path(table).read_text().splitlines()[1:]:
            field = line.split()
            if field[9] in inodes and field[3] == '01' and int(field[2].rsplit(':', 1)[1], 16) == port:
                count += 1
    return count
