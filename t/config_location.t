# The directives of a location: what is refused, at which line, and what to write instead.

use lib 't/lib';
use NginxKafka;
use Test::Nginx::Socket 'no_plan';

NginxKafka::prepare();
run_tests();

__DATA__

=== TEST 1: kafka_pass: a cluster that is nowhere
--- location_fault
kafka_pass mian; #!
kafka_topic t1;
--- remedy: unknown kafka_cluster "mian".*"?main



=== TEST 2: kafka_pass without a topic
--- location_fault
kafka_pass main; #!
kafka_key kafka_topic;
--- remedy: "kafka_pass main" has no "kafka_topic", add "kafka_topic NAME;"



=== TEST 3: kafka_pass without a cluster
--- location_fault
kafka_pass; #!
--- remedy: (invalid number of arguments|kafka_pass CLUSTER).*



=== TEST 4: kafka_pass twice
--- location_fault
kafka_pass main;
kafka_pass main; #!
--- remedy: "kafka_pass" directive is duplicate



=== TEST 5: kafka_pass with a variable
--- location_fault
kafka_pass $host; #!
--- remedy: kafka_pass.*without variables



=== TEST 6: kafka_pass beside another handler
--- location_fault
proxy_pass http://127.0.0.1:9;
kafka_pass main; #!
--- remedy: another content handler



=== TEST 7: kafka_pass in a server
--- fault
server {
kafka_pass main; #!
}
--- remedy: "kafka_pass" directive is not allowed here



=== TEST 8: kafka_pass in the http block
--- fault
kafka_pass main; #!
--- remedy: "kafka_pass" directive is not allowed here



=== TEST 9: kafka_topic with a variable and no list
--- location_fault
kafka_topic ev-$arg_t; #!
--- remedy: add "kafka_allowed_topics NAME



=== TEST 10: kafka_topic with a name that Kafka does not take
--- location_fault
kafka_topic "a b"; #!
--- remedy: "a b" in "kafka_topic" directive



=== TEST 11: kafka_topic, a dot
--- location_fault
kafka_topic t1,..; #!
--- remedy: kafka_topic



=== TEST 12: kafka_topic, empty
--- location_fault
kafka_topic ""; #!
--- remedy: kafka_topic



=== TEST 13: kafka_topic, nothing but commas
--- location_fault
kafka_topic ", ,"; #!
--- remedy: kafka_topic



=== TEST 14: kafka_topic, 250 characters
--- location_fault
kafka_topic nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn; #!
--- remedy: 249



=== TEST 15: kafka_topic twice
--- location_fault
kafka_topic t1;
kafka_topic t2; #!
--- remedy: "kafka_topic" directive is duplicate



=== TEST 16: kafka_topic with two values
--- location_fault
kafka_topic t1 t2; #!
--- remedy: (invalid number of arguments|kafka_topic VALUE)



=== TEST 17: kafka_allowed_topics: a regex that is none
--- location_fault
kafka_allowed_topics t1 "~("; #!
--- remedy: "~\(" in "kafka_allowed_topics" directive



=== TEST 18: kafka_allowed_topics: an empty regex
--- location_fault
kafka_allowed_topics ~; #!
--- remedy: write "~\."



=== TEST 19: kafka_allowed_topics: no name
--- location_fault
kafka_allowed_topics "a b"; #!
--- remedy: a regular expression begins with "~"



=== TEST 20: kafka_allowed_topics without values
--- location_fault
kafka_allowed_topics; #!
--- remedy: invalid number of arguments



=== TEST 21: kafka_methods: an unknown one
--- location_fault
kafka_methods POST GRAB; #!
--- remedy: "GRAB" in "kafka_methods" directive.*POST



=== TEST 22: kafka_methods without values
--- location_fault
kafka_methods; #!
--- remedy: invalid number of arguments



=== TEST 23: kafka_partition that is none
--- location_fault
kafka_partition -1; #!
--- remedy: "-1" in "kafka_partition" directive



=== TEST 24: kafka_partition too large
--- location_fault
kafka_partition 2147483648; #!
--- remedy: "2147483648" in "kafka_partition" directive



=== TEST 25: kafka_timestamp that is none
--- location_fault
kafka_timestamp yesterday; #!
--- remedy: "yesterday" in "kafka_timestamp" directive



=== TEST 26: kafka_value: an unknown one
--- location_fault
kafka_value xml; #!
--- remedy: "xml" in "kafka_value" directive.*"body"



=== TEST 27: kafka_value without values
--- location_fault
kafka_value; #!
--- remedy: invalid number of arguments



=== TEST 28: kafka_empty_body maybe
--- location_fault
kafka_empty_body maybe; #!
--- remedy: "maybe" in "kafka_empty_body" directive.*"value".*"null".*"reject"



=== TEST 29: kafka_empty_body with kafka_value none
--- location_fault
kafka_value none;
kafka_empty_body null; #!
--- remedy: remove one of them



=== TEST 30: kafka_value none with kafka_empty_body
--- location_fault
kafka_empty_body null;
kafka_value none; #!
--- remedy: remove one of them



=== TEST 31: kafka_empty_body under an inherited kafka_value none
--- fault
kafka_value none;
server {
location / {
kafka_empty_body reject; #!
}
}
--- remedy: remove one of them



=== TEST 32: kafka_async yes
--- location_fault
kafka_async yes; #!
--- remedy: "yes" in "kafka_async" directive.*"on" or "off"



=== TEST 33: kafka_async twice
--- location_fault
kafka_async on;
kafka_async off; #!
--- remedy: "kafka_async" directive is duplicate



=== TEST 34: kafka_error_detail yes
--- location_fault
kafka_error_detail yes; #!
--- remedy: "yes" in "kafka_error_detail" directive.*"on" or "off"



=== TEST 35: kafka_error_detail twice
--- location_fault
kafka_error_detail on;
kafka_error_detail off; #!
--- remedy: "kafka_error_detail" directive is duplicate



=== TEST 36: kafka_ignore_client_abort yes
--- location_fault
kafka_ignore_client_abort yes; #!
--- remedy: "yes" in "kafka_ignore_client_abort" directive.*"on" or "off"



=== TEST 37: kafka_ignore_client_abort twice
--- location_fault
kafka_ignore_client_abort on;
kafka_ignore_client_abort off; #!
--- remedy: "kafka_ignore_client_abort" directive is duplicate



=== TEST 38: kafka_success_status 199
--- location_fault
kafka_success_status 199; #!
--- remedy: "199" in "kafka_success_status" directive



=== TEST 39: kafka_success_status 300
--- location_fault
kafka_success_status 300; #!
--- remedy: "300" in "kafka_success_status" directive



=== TEST 40: kafka_success_status 404
--- location_fault
kafka_success_status 404; #!
--- remedy: "404" in "kafka_success_status" directive



=== TEST 41: kafka_success_status 99
--- location_fault
kafka_success_status 99; #!
--- remedy: "99" in "kafka_success_status" directive



=== TEST 42: kafka_success_status x
--- location_fault
kafka_success_status x; #!
--- remedy: "x" in "kafka_success_status" directive



=== TEST 43: kafka_success_status 2xx
--- location_fault
kafka_success_status 2xx; #!
--- remedy: "2xx" in "kafka_success_status" directive



=== TEST 44: kafka_header without a value
--- location_fault
kafka_header name; #!
--- remedy: (invalid number of arguments|kafka_header NAME VALUE)



=== TEST 45: kafka_header without a name
--- location_fault
kafka_header "" x; #!
--- remedy: kafka_header



=== TEST 46: kafka_header with a variable for a name
--- location_fault
kafka_header $host x; #!
--- remedy: name of a record header, without variables



=== TEST 47: a variable that nobody knows (nginx itself tells no line)
--- config
    location /t { kafka_pass main; kafka_topic t1; kafka_key $no_such_variable; }
--- must_die
--- error_log
[emerg]
unknown "no_such_variable" variable



=== TEST 48: kafka_key twice
--- location_fault
kafka_key k;
kafka_key k; #!
--- remedy: "kafka_key" directive is duplicate



=== TEST 49: kafka_partition twice
--- location_fault
kafka_partition 0;
kafka_partition 0; #!
--- remedy: "kafka_partition" directive is duplicate



=== TEST 50: kafka_timestamp twice
--- location_fault
kafka_timestamp 0;
kafka_timestamp 0; #!
--- remedy: "kafka_timestamp" directive is duplicate



=== TEST 51: kafka_methods twice
--- location_fault
kafka_methods POST;
kafka_methods POST; #!
--- remedy: "kafka_methods" directive is duplicate



=== TEST 52: kafka_allowed_topics twice
--- location_fault
kafka_allowed_topics t1;
kafka_allowed_topics t1; #!
--- remedy: "kafka_allowed_topics" directive is duplicate



=== TEST 53: kafka_value twice
--- location_fault
kafka_value body;
kafka_value body; #!
--- remedy: "kafka_value" directive is duplicate



=== TEST 54: kafka_empty_body twice
--- location_fault
kafka_empty_body null;
kafka_empty_body null; #!
--- remedy: "kafka_empty_body" directive is duplicate



=== TEST 55: kafka_success_status twice
--- location_fault
kafka_success_status 201;
kafka_success_status 201; #!
--- remedy: "kafka_success_status" directive is duplicate



=== TEST 56: an unknown directive
--- location_fault
kafka_tpoic t1; #!
--- remedy: unknown directive "kafka_tpoic"



=== TEST 57: everything at once
--- config
    location /t {
        kafka_pass main;
        kafka_methods GET POST PUT PATCH DELETE;
        kafka_topic t1,$arg_t;
        kafka_allowed_topics t1 ~^ev- ~*^LOG;
        kafka_key $request_id;
        kafka_partition "";
        kafka_timestamp $msec;
        kafka_value body;
        kafka_empty_body reject;
        kafka_header id $request_id;
        kafka_header id2 $request_id;
        kafka_async off;
        kafka_error_detail on;
        kafka_success_status 201;
        kafka_ignore_client_abort off;
    }
--- request
POST /t
x
--- error_code: 201
--- response_body_like: message sent



=== TEST 58: a constant topic outside its own list starts, with a warning
--- config
    location /t { kafka_pass main; kafka_topic t1; kafka_allowed_topics t2; }
--- request
POST /t
x
--- error_code: 403
--- error_log eval
qr/\[warn\].*t1.*kafka_allowed_topics.* in \S+:\d+/



=== TEST 59: settings in if
--- location_fault
if ($arg_x) {
kafka_topic t2; #!
}
--- remedy: "kafka_topic" directive is not allowed here



=== TEST 60: a success status that has no content
--- location_fault
kafka_success_status 205; #!
--- remedy: "205" in "kafka_success_status" directive.*200 to 299
