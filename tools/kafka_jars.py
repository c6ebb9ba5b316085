"""The Apache Kafka versions that tools/kafka runs, and their jars from Maven Central.

Kafka's own tarballs are not on Maven Central, its jars are: a pom with one dependency brings all that
a broker needs. Each version has its own folder in the cache, complete or absent, never half full.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

CACHE = Path(os.environ.get("NGINX_KAFKA_CACHE") or Path.home() / ".cache" / "nginx-kafka")

# ZooKeeper 3.4.10 and its log binding: the 3.4.13 client that Kafka 2.0 names cannot connect on Java 14
# and later (ZOOKEEPER-3779), and Kafka 0.11 and 1.1 name 3.4.10 without anything to log with.
ZOOKEEPER_3_4 = [
    "org.apache.zookeeper:zookeeper:3.4.10",
    "org.slf4j:slf4j-log4j12:1.7.25",
    "org.slf4j:slf4j-api:1.7.25",
    "log4j:log4j:1.2.17",
]
# Java 11 took JAXB out of the platform; Kafka 0.11 still uses its base64 for ids.
JAXB = ["javax.xml.bind:jaxb-api:2.3.1"]

# version: (Scala version of the artifact, controller quorum, dependencies besides Kafka itself).
# 3.9 can do both "kraft" and "zookeeper"; it runs as KRaft unless an older broker is in the cluster.
VERSIONS = {
    "0.11.0.3": ("2.12", "zookeeper", ZOOKEEPER_3_4 + JAXB),
    "1.1.1": ("2.12", "zookeeper", ZOOKEEPER_3_4),
    "2.0.1": ("2.12", "zookeeper", ZOOKEEPER_3_4),
    "2.8.2": ("2.13", "zookeeper", ["org.slf4j:slf4j-log4j12:1.7.30"]),
    "3.9.2": ("2.13", "kraft", ["org.slf4j:slf4j-reload4j:1.7.36", "org.apache.kafka:kafka-tools:3.9.2"]),
    "4.4.0": ("2.13", "kraft", ["org.apache.logging.log4j:log4j-slf4j-impl:2.25.3", "org.apache.kafka:kafka-tools:4.4.0"]),
}

POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>nginx-kafka</groupId><artifactId>kafka-{version}</artifactId><version>1</version>
  <dependencies>
{dependencies}
  </dependencies>
</project>
"""


def say(text):
    print(f"kafka: {text}", file=sys.stderr, flush=True)


def number(version):
    """`2.8.2` as `(2, 8, 2)`, to compare."""
    return tuple(int(part) for part in version.split("."))


def pom(version):
    scala, _, extra = VERSIONS[version]
    dependencies = []
    for coordinate in [f"org.apache.kafka:kafka_{scala}:{version}"] + extra:
        group, artifact, wanted = coordinate.split(":")
        dependencies.append(
            f"    <dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
            f"<version>{wanted}</version></dependency>"
        )
    return POM.format(version=version, dependencies="\n".join(dependencies))


def libs(version):
    """The folder with the jars of `version`; fetches them if the cache has none."""
    if version not in VERSIONS:
        raise SystemExit(f"kafka: unknown version {version}; known: {' '.join(VERSIONS)}")
    # The pom's hash: a changed list of jars is another folder, and a broker that runs from the old one
    # does not lose its jars.
    done = CACHE / f"kafka-{version}-{hashlib.sha256(pom(version).encode()).hexdigest()[:8]}"
    if done.is_dir():
        return done
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / f"kafka-{version}.lock", "w") as lock:
        # The kernel lets go of the lock however its holder ends.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.is_dir():
            fetch(version, done)
    return done


def fetch(version, done):
    partial = CACHE / f"kafka-{version}.partial"
    for attempt in range(1, 4):
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        (partial / "pom.xml").write_text(pom(version))
        say(f"fetching the jars of Kafka {version} into {done} (attempt {attempt} of 3)")
        started = time.monotonic()
        with open(CACHE / f"kafka-{version}.maven.log", "w") as log:
            maven = subprocess.run(
                ["mvn", "-B", "-q", "-f", str(partial / "pom.xml"), "dependency:copy-dependencies",
                 f"-DoutputDirectory={partial}", "-DincludeScope=runtime"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
            )
        if maven.returncode == 0 and any(partial.glob("kafka_*.jar")):
            partial.rename(done)
            say(f"{len(list(done.glob('*.jar')))} jars in {time.monotonic() - started:.0f} s")
            return
        say(f"Maven failed ({maven.returncode}), see {CACHE}/kafka-{version}.maven.log")
        time.sleep(5 * attempt)
    raise SystemExit(f"kafka: cannot fetch Kafka {version}")
