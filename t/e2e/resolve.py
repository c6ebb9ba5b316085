#!/usr/bin/env python3
"""Names: hosts file, nginx's resolver, several addresses, names that come to exist, resolv.conf."""
import os
import shutil
import socket
import struct
import subprocess
import threading
import time

from harness import Kafka, Nginx, check, eventually, finish, free_port, note

TIMES = 'delivery_timeout 2s; request_timeout 1s; connect_timeout 500ms; reconnect_backoff 50ms 200ms;'
# Nobody listens there; the kernel refuses at once.
DEAD = '127.0.0.9'


class Dns:
    """A name server that knows what `names` says at the moment: name → addresses."""

    def __init__(self, address='127.0.0.1', port=0):
        self.names, self.asked, self.silent = {}, [], False
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((address, port))
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            query, client = self.socket.recvfrom(4096)
            labels, at = [], 12
            while query[at]:
                labels.append(query[at + 1:at + 1 + query[at]].decode())
                at += 1 + query[at]
            name = '.'.join(labels).lower()
            kind, = struct.unpack_from('>H', query, at + 1)
            question = query[12:at + 5]
            self.asked.append((name, kind))
            if self.silent:
                continue
            family, kinds = {1: (socket.AF_INET, 1), 28: (socket.AF_INET6, 28)}.get(kind, (None, None))
            known = self.names.get(name)
            answers = [socket.inet_pton(family, a) for a in known or [] if family and (':' in a) == (kind == 28)]
            flags = 0x8180 if known is not None else 0x8183
            reply = query[:2] + struct.pack('>HHHHH', flags, 1, len(answers), 0, 0) + question
            for address in answers:
                reply += struct.pack('>HHHIH', 0xc00c, kinds, 1, 1, len(address)) + address
            self.socket.sendto(reply, client)


def nginx_with(servers, resolver, **options):
    return Nginx(f'{resolver} kafka_cluster main {{ bootstrap_servers {servers}; {TIMES} }}',
                 'location /t { kafka_pass main; kafka_topic t1; kafka_error_detail on; }', **options)


def status_of(nginx):
    return nginx.post('/t', b'x')[0]


def hosts_file(port):
    for name, resolver in [('no resolver', ''), ('with a resolver that does not know it', f'resolver 127.0.0.1:{dns.port} ipv6=off;')]:
        with nginx_with(f'localhost:{port}', resolver) as nginx:
            check(f'localhost, {name}', status_of(nginx) == 200)
            nginx.stop()
            nginx.healthy(f'localhost, {name}')
    own = socket.gethostname()
    with open('/etc/hosts') as hosts:
        listed = any(own in line.split('#')[0].split()[1:] for line in hosts)
    if listed:
        with nginx_with(f'{own}:{free_port()}', '') as nginx:
            status, body, _ = nginx.post('/t', b'x')
            check(f'{own} of the hosts file: found, though nobody listens', status == 503 and b'resolve' not in body.lower(), body)


def through_the_resolver(port):
    dns.names['kafka.test'] = ['127.0.0.1']
    with nginx_with(f'kafka.test:{port}', f'resolver 127.0.0.1:{dns.port} ipv6=off valid=1s;') as nginx:
        check('a name through the resolver', status_of(nginx) == 200)
        check('the name server was asked', ('kafka.test', 1) in dns.asked)
        nginx.stop()
        nginx.healthy('resolver')


def several_addresses(port):
    dns.names['many.test'] = [DEAD, '127.0.0.10', '127.0.0.1', '127.0.0.11']
    for i in range(4):  # nginx rotates them: whichever comes first, all are tried
        with nginx_with(f'many.test:{port}', f'resolver 127.0.0.1:{dns.port} ipv6=off;') as nginx:
            begin = time.monotonic()
            check(f'several addresses of which one lives, {i}', status_of(nginx) == 200, f'{time.monotonic() - begin:.1f} s')
            nginx.stop()
    dns.names['both.test'] = ['::1', '127.0.0.1']
    with nginx_with(f'both.test:{port}', f'resolver 127.0.0.1:{dns.port};') as nginx:
        check('AAAA refused, A open', status_of(nginx) == 200)


def fixed_later(port):
    dns.names.pop('later.test', None)
    with nginx_with(f'later.test:{port}', f'resolver 127.0.0.1:{dns.port} ipv6=off valid=1s;') as nginx:
        status, body, headers = nginx.post('/t', b'x')
        check('unresolvable: nginx starts, 503', status == 503 and int(headers['Retry-After'] or 0) >= 1, (status, body))
        check('unresolvable: the log names it', 'later.test' in nginx.log(), nginx.log()[-500:])
        check('unresolvable: the client is told with kafka_error_detail', b'later.test' in body, body)
        dns.names['later.test'] = ['127.0.0.1']
        check('resolved later: 200 without reload', eventually(lambda: status_of(nginx) == 200, 15, 0.2))
        nginx.stop()
        nginx.healthy('resolved later')
    dns.silent = True
    with nginx_with(f'kafka.test:{port}', f'resolver 127.0.0.1:{dns.port} ipv6=off; resolver_timeout 1s;') as nginx:
        begin = time.monotonic()
        check('a silent name server: 503 in time', status_of(nginx) == 503 and time.monotonic() - begin < 3, f'{time.monotonic() - begin:.1f} s')
        begin = time.monotonic()
        nginx.stop()
        check('leaving does not wait for the name server', time.monotonic() - begin < 3, f'{time.monotonic() - begin:.1f} s')
        nginx.healthy('silent name server')
    dns.silent = False


def advertised_names():
    """Brokers advertise names too."""
    with Kafka(settings=['advertised.listeners=PLAINTEXT://advertised.test:{port}']) as kafka:
        # tools/kafka and kcat reach the broker without its name only for metadata: create with what it has.
        kafka.create_topics('t1')
        dns.names['advertised.test'] = ['127.0.0.1']
        with nginx_with(f'127.0.0.1:{kafka.port}', f'resolver 127.0.0.1:{dns.port} ipv6=off valid=1s;') as nginx:
            check('an advertised name', status_of(nginx) == 200)
            nginx.stop()
            nginx.healthy('advertised name')
        del dns.names['advertised.test']
        with nginx_with(f'127.0.0.1:{kafka.port}', f'resolver 127.0.0.1:{dns.port} ipv6=off valid=1s;') as nginx:
            status, body, _ = nginx.post('/t', b'x')
            check('an advertised name that nobody knows: 503', status == 503, (status, body))
            check('and the log names it', 'advertised.test' in nginx.log(), nginx.log()[-500:])
            dns.names['advertised.test'] = ['127.0.0.1']
            check('known later: 200', eventually(lambda: status_of(nginx) == 200, 15, 0.2))
            nginx.stop()


def system_resolver(port):
    """Without `resolver`: the name servers of resolv.conf. In a mount namespace with our own file."""
    try:
        server = Dns('127.0.0.53', 53)
    except OSError as error:
        note(f'resolv.conf: skipped, no port 53: {error}')
        return
    server.names['system.test'] = ['127.0.0.1']
    if not shutil.which('unshare') or subprocess.run(['unshare', '-m', 'true'], capture_output=True).returncode:
        note('resolv.conf: skipped, no mount namespaces')
        return
    nginx = nginx_with(f'system.test:{port}', '')
    (nginx.dir / 'resolv.conf').write_text('# ours\nsearch example\nnameserver 127.0.0.53\noptions ndots:0\n')
    nginx.command = ['unshare', '-m', 'sh', '-c',
                     f'mount --bind {nginx.dir}/resolv.conf "$(readlink -f /etc/resolv.conf)" && exec "$@"', 'sh']
    with nginx:
        check('without a resolver: resolv.conf', status_of(nginx) == 200, nginx.log()[-500:])
        check('its name server was asked', any(name == 'system.test' for name, _ in server.asked), server.asked)
        nginx.stop()
        nginx.healthy('resolv.conf')
    nginx = nginx_with(f'system.test:{port}', '')
    (nginx.dir / 'resolv.conf').write_text('# nothing\n')
    nginx.command = ['unshare', '-m', 'sh', '-c',
                     f'mount --bind {nginx.dir}/resolv.conf "$(readlink -f /etc/resolv.conf)" && exec "$@"', 'sh']
    with nginx:
        check('no name server at all: nginx starts, 503', status_of(nginx) == 503)
        check('and the log names it', 'system.test' in nginx.log(), nginx.log()[-500:])
        nginx.stop()
        nginx.healthy('no name server')


dns = Dns()
kafka_port = int(os.environ['TEST_NGINX_KAFKA_PORT'])
hosts_file(kafka_port)
through_the_resolver(kafka_port)
several_addresses(kafka_port)
fixed_later(kafka_port)
system_resolver(kafka_port)
advertised_names()
finish()
