# $kafka_* in the access log.

use lib 't/lib';
use NginxKafka;
use Test::Nginx::Socket 'no_plan';
use KafkaLog;

NginxKafka::prepare();
add_block_preprocessor(sub {
    my $block = shift;
    $block->set_value('http_config', ($block->http_config // $NginxKafka::CLUSTER) . <<'END');
    log_format kafka 'topic=[$kafka_topic] partition=[$kafka_partition] offset=[$kafka_offset] '
        'status=[$kafka_status] error=[$kafka_error] latency=[$kafka_latency] code=$status';
    access_log logs/access.log kafka;
END
});
KafkaLog::prepare();
run_tests();

__DATA__

=== TEST 1: a record that was written
--- config
    location /t { kafka_pass main; kafka_topic t1; }
--- request
POST /t
x
--- access_log eval
qr/topic=\[t1\] partition=\[0\] offset=\[\d+\] status=\[ok\] error=\[-?\] latency=\[\d+\.\d{3}\] code=200/



=== TEST 2: several records are joined as $upstream_* are
--- config
    location /t { kafka_pass main; kafka_topic t2,t1; }
--- request
POST /t
x
--- access_log eval
qr/topic=\[t2, t1\] partition=\[0, 0\] offset=\[\d+, \d+\] status=\[ok, ok\] error=\[.*\] latency=\[\d+\.\d{3}, \d+\.\d{3}\] code=200/



=== TEST 3: a queued record
--- config
    location /t { kafka_pass main; kafka_topic t1; kafka_async on; }
--- request
POST /t
x
--- error_code: 202
--- access_log eval
qr/topic=\[t1\] .*status=\[queued\] .* code=202/



=== TEST 4: an error has a name
--- config
    location /t { kafka_pass main; kafka_topic nosuch; }
--- request
POST /t
x
--- error_code: 404
--- access_log eval
qr/topic=\[nosuch\] partition=\[-?\] offset=\[-?\] status=\[(?!ok|queued|-)\S+\] error=\[topic does not exist[^\]]*\] .* code=404/



=== TEST 5: a refused request
--- config
    location /t { kafka_pass main; kafka_topic $arg_t; kafka_allowed_topics t2; }
--- request
POST /t?t=t1
x
--- error_code: 403
--- access_log eval
qr/status=\[(?!ok|queued|-)\S+\] error=\[.+\] .* code=403/



=== TEST 6: requests that have nothing to do with Kafka
--- config
    location /t { return 200 plain; }
--- request
GET /t
--- access_log
topic=[-] partition=[-] offset=[-] status=[-] error=[-] latency=[-] code=200



=== TEST 7: the cause is in $kafka_error though the client is not told
--- http_config
    kafka_cluster main { bootstrap_servers $TEST_NGINX_DEAD_BROKER; delivery_timeout 1s; request_timeout 500ms; }
--- config
    location /t { kafka_pass main; kafka_topic t1; }
--- request
POST /t
x
--- timeout: 5
--- error_code: 503
--- access_log eval
qr/status=\[(?!ok|queued|-)\S+\] error=\[.+\] latency=\[[01]\.\d{3}\] code=503/



=== TEST 8: the variables work where answers are made
--- config
    location /t { kafka_pass main; kafka_topic t1; add_header X-Kafka "$kafka_topic/$kafka_partition/$kafka_status"; }
--- request
POST /t
x
--- response_headers
X-Kafka: t1/0/ok
