#!/usr/bin/env python3
"""Every configuration in nginx-conf/ that people copy is taken by nginx as it stands, but for the module's path."""
import pathlib
import re
import subprocess

from harness import BINARY, MODULE, ROOT, check, directory, finish

for conf in sorted((ROOT / 'nginx-conf').glob('*.conf')):
    where = directory()
    (where / 'logs').mkdir()
    text = conf.read_text()
    loads = re.findall(r'^\s*load_module\s+\S*ngx_http_kafka_module\.so;', text, re.M)
    check(f'{conf.name} loads the module', loads)
    text = re.sub(r'^(\s*load_module\s+)\S*ngx_http_kafka_module\.so;', rf'\1{MODULE};', text, flags=re.M)
    # Only where files are: pid and logs of a machine are not ours to touch.
    text = re.sub(r'^(\s*)(pid|error_log|access_log)\s+/[^;]*/', r'\1\2 ' + f'{where}/logs/', text, flags=re.M)
    path = where / conf.name
    path.write_text(text)
    done = subprocess.run([BINARY, '-t', '-e', f'{where}/logs/error.log', '-p', f'{where}/', '-c', str(path)],
                          capture_output=True, text=True)
    check(f'{conf.name}: nginx -t', done.returncode == 0, done.stderr)
    check(f'{conf.name}: no warning', '[warn]' not in done.stderr, done.stderr)
finish()
