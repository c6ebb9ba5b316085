#!/usr/bin/env python3
"""versions.py [VERSION…]: the same three requests against real Kafka of nine years, read back by kcat.

Prints the table of negotiated versions, as the module's log line tells them when a connection is ready."""
import json
import re
import subprocess
import sys

from harness import Kafka, Log, Nginx, check, finish

VERSIONS = sys.argv[1:] or ['0.11.0.3', '1.1.1', '2.0.1', '2.8.2', '3.9.2', '4.4.0']
BIG = bytes(i * 7 % 256 for i in range(300_000))
SERVER = '''
        location /value { kafka_pass main; kafka_topic t1; }
        location /all { kafka_pass main; kafka_topic p8; kafka_key $arg_k; kafka_header method $request_method; kafka_timestamp 1700000000123; }
        location /null { kafka_pass main; kafka_topic t1; kafka_value none; kafka_key gone; }
'''
APIS = ('Metadata', 'Produce', 'InitProducerId')
table = []

for version in VERSIONS:
    with Kafka(version) as kafka:
        kafka.create_topics('t1', 'p8:8')
        log = Log(kafka.port)
        with Nginx(f'kafka_cluster main {{ bootstrap_servers 127.0.0.1:{kafka.port}; }}', SERVER) as nginx:
            for name, path, body, want in [
                    ('a value', '/value', b'hello from ' + version.encode(), None),
                    ('300 KB', '/value', BIG, None),
                    ('key, header and timestamp', '/all?k=user-1', b'full', b'user-1 1700000000123 4 method=PUT full'),
                    ('a tombstone', '/null', b'ignored', b'gone -1')]:
                status, answer, _ = nginx.post(path, body, method='PUT')
                if not check(f'{version}, {name}: 200', status == 200, (status, answer, nginx.log()[-600:])):
                    continue
                at = json.loads(answer)
                form = '%k %S' if path == '/null' else '%k %T %p %h %s' if want else '%s'
                found = log.read(at['topic'], form, at['offset'], extra=['-p', str(at['partition']), '-c', '1'])
                check(f'{version}, {name}: as kcat reads it', found == [want or body], found and found[0][:80])
            nginx.stop()
            nginx.healthy(version)
            line = next((l for l in reversed(nginx.log().splitlines()) if '[info]' in l and 'Produce' in l), '')
            found = {api: m[1] for api in APIS if (m := re.search(rf'{api}[ =:v]+(\d+)', line))}
            check(f'{version}: the log tells the negotiated versions', 'Produce' in found and 'Metadata' in found, line or nginx.log()[-600:])
            table.append([version] + [found.get(api, '–') for api in APIS])

print()
print('| Kafka | ' + ' | '.join(APIS) + ' |')
print('|---' * (len(APIS) + 1) + '|')
for row in table:
    print('| ' + ' | '.join(row) + ' |')
print()
finish()
