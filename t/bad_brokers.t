# Brokers that are none, do not answer or answer nonsense: a clear line in the error log, the right
# status, and other clusters unaffected. What they do to memory: e2e/bad_brokers.py.

use lib 't/lib';
use NginxKafka;
use FakeBroker qw(http closes closes_on_request garbage garbage_body negative endless silent half
    wrong_correlation too_old mute_after_versions closes_after_versions);
use Test::Nginx::Socket 'no_plan';
use KafkaLog;

NginxKafka::prepare();
# Every block has the same two clusters: bad, of which --- http_config tells only the address, and good.
add_block_preprocessor(sub {
    my $block = shift;
    chomp(my $server = $block->http_config);
    $block->set_value('http_config', <<"END");
    kafka_cluster bad {
        bootstrap_servers $server;
        delivery_timeout 800ms;
        request_timeout 400ms;
        connect_timeout 300ms;
        reconnect_backoff 10ms 100ms;
    }
    kafka_cluster good { bootstrap_servers 127.0.0.1:\$TEST_NGINX_KAFKA_PORT; }
END
    $block->set_value('config', <<'END') unless defined $block->config;
    location /bad { kafka_pass bad; kafka_topic t1; }
    location /good { kafka_pass good; kafka_topic t1; }
END
    $block->set_value('pipelined_requests', ["POST /good\nbefore", "POST /bad\nx", "POST /good\nafter"])
        unless defined $block->request;
    if (!defined $block->error_code) {
        $block->set_value('error_code', [200, 503, 200]);
        $block->set_value('records', [{ value => 'before' }, undef, { value => 'after' }]);
        $block->set_value('response_body_like', ['message sent', 'could not send message to topic', 'message sent']);
    }
    $block->set_value('timeout', 5) unless defined $block->timeout;
});
KafkaLog::prepare();
run_tests();

__DATA__

=== TEST 1: nothing listens
--- http_config
$TEST_NGINX_DEAD_BROKER
--- error_log eval
qr/"bad".*127\.0\.0\.9.*(111: )?Connection refused/



=== TEST 2: a web server
--- http_config
127.0.0.1:$TEST_NGINX_FAKE_HTTP
--- error_log eval
qr/"bad".*127\.0\.0\.1:$ENV{TEST_NGINX_FAKE_HTTP}.*HTTP/



=== TEST 3: closes at once
--- http_config
127.0.0.1:$TEST_NGINX_FAKE_CLOSES
--- error_log eval
qr/"bad".*127\.0\.0\.1:$ENV{TEST_NGINX_FAKE_CLOSES}.*(clos|reset)/



=== TEST 4: closes on the first request
--- http_config
127.0.0.1:$TEST_NGINX_FAKE_CLOSES_ON_REQUEST
--- error_log eval
qr/"bad".*127\.0\.0\.1:$ENV{TEST_NGINX_FAKE_CLOSES_ON_REQUEST}.*(clos|reset)/



=== TEST 5: garbage
--- http_config
127.0.0.1:$TEST_NGINX_FAKE_GARBAGE
--- error_log eval
qr/"bad".*127\.0\.0\.1:$ENV{TEST_NGINX_FAKE_GARBAGE}/



=== TEST 6: garbage in a good frame
--- http_config
127.0.0.1:$TEST_NGINX_FAKE_GARBAGE_BODY
--- error_log eval
qr/"bad".*127\.0\.0\.1:$ENV{TEST_NGINX_FAKE_GARBAGE_BODY}/



=== TEST 7: a frame of negative length
--- http_config
127.0.0.1:$TEST_NGINX_FAKE_NEGATIVE
--- error_log eval
qr/"bad".*127\.0\.0\.1:$ENV{TEST_NGINX_FAKE_NEGATIVE}/



=== TEST 8: a frame without end
--- http_config
127.0.0.1:$TEST_NGINX_FAKE_ENDLESS
--- error_log eval
qr/"bad".*127\.0\.0\.1:$ENV{TEST_NGINX_FAKE_ENDLESS}/



=== TEST 9: says nothing
--- http_config
127.0.0.1:$TEST_NGINX_FAKE_SILENT
--- error_log eval
qr/"bad".*127\.0\.0\.1:$ENV{TEST_NGINX_FAKE_SILENT}.*tim/



=== TEST 10: says half
--- http_config
127.0.0.1:$TEST_NGINX_FAKE_HALF
--- error_log eval
qr/"bad".*127\.0\.0\.1:$ENV{TEST_NGINX_FAKE_HALF}.*tim/



=== TEST 11: answers what was not asked
--- http_config
127.0.0.1:$TEST_NGINX_FAKE_WRONG_CORRELATION
--- error_log eval
qr/"bad".*127\.0\.0\.1:$ENV{TEST_NGINX_FAKE_WRONG_CORRELATION}.*answer to request 78 instead of 1/



=== TEST 12: a broker of before record batches: the API and both ranges
--- http_config
127.0.0.1:$TEST_NGINX_FAKE_TOO_OLD
--- error_log eval
qr/"bad".*127\.0\.0\.1:$ENV{TEST_NGINX_FAKE_TOO_OLD}.*Produce.*0.*2.*3.*13/



=== TEST 13: tells its versions, then nothing
--- http_config
127.0.0.1:$TEST_NGINX_FAKE_MUTE_AFTER_VERSIONS
--- error_log eval
qr/"bad".*127\.0\.0\.1:$ENV{TEST_NGINX_FAKE_MUTE_AFTER_VERSIONS}.*tim/



=== TEST 14: tells its versions, then closes
--- http_config
127.0.0.1:$TEST_NGINX_FAKE_CLOSES_AFTER_VERSIONS
--- error_log eval
qr/"bad".*127\.0\.0\.1:$ENV{TEST_NGINX_FAKE_CLOSES_AFTER_VERSIONS}.*clos/



=== TEST 15: a name that cannot be resolved does not prevent the start
--- http_config
no-such-host.invalid:9092
--- error_log eval
qr/"bad".*no-such-host\.invalid/



=== TEST 16: the second of two bootstrap servers is good
--- http_config
$TEST_NGINX_DEAD_BROKER 127.0.0.1:$TEST_NGINX_KAFKA_PORT
--- error_code eval
[200, 200, 200]
--- records eval
[{ value => 'before' }, { value => 'x' }, { value => 'after' }]



=== TEST 17: once the cluster is known to be unreachable, the answer comes at once
--- http_config
$TEST_NGINX_DEAD_BROKER
--- request eval
["POST /bad\nfirst", "POST /bad\nsecond", "POST /bad\nthird"]
--- error_code eval
[503, 503, 503]
--- timeout: 1.2
--- raw_response_headers_like eval
[('Retry-After: [1-9]\d*\r\n') x 3]



=== TEST 18: a full buffer is 503 at once
--- http_config
127.0.0.1:$TEST_NGINX_FAKE_SILENT; buffer_size 256k; max_message_size 100k; max_request_size 100k; batch_size 100k
--- config
    location /bad { kafka_pass bad; kafka_topic t1; kafka_async on; }
--- request eval
[map { "POST /bad\n" . $_ x 90000 } qw(a b c d e f)]
--- error_code_like eval
[202, '202|503', '202|503', '202|503', '202|503', 503]
--- error_code:
--- raw_response_headers_like eval
['', '', '', '', '', 'Retry-After: [1-9]\d*\r\n']
--- response_body_like eval
['queued', '.', '.', '.', '.', 'could not send message to topic']



=== TEST 19: bytes of no broker harm the second of two topics' cluster neither
--- http_config
127.0.0.1:$TEST_NGINX_FAKE_GARBAGE 127.0.0.1:$TEST_NGINX_KAFKA_PORT
--- error_code eval
[200, 200, 200]
