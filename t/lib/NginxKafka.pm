package NginxKafka;

# What all t/*.t share. To be used before Test::Nginx::Socket: it appends the project's own runner to
# @INC, where it serves only if the genuine Test::Nginx is not to be found.
#
#   TEST_NGINX_BINARY          nginx                            (default: build/nginx)
#   TEST_NGINX_KAFKA_MODULE    ngx_http_kafka_module.so         (default: build/…)
#   TEST_NGINX_KAFKA_PORT      a Kafka broker on 127.0.0.1      (default: 9092)
#
# t/run sets them, and makes the topics.

use strict;
use warnings;
no warnings 'once';
use Cwd qw(abs_path);
use File::Basename qw(dirname);

my $t;

BEGIN {
    $t = abs_path(dirname(__FILE__) . '/..');
    push @INC, "$t/lib/fallback";
    my $build = "$t/../build";
    $ENV{TEST_NGINX_BINARY}       ||= "$build/nginx";
    $ENV{TEST_NGINX_KAFKA_MODULE} ||= "$build/ngx_http_kafka_module.so";
    $ENV{TEST_NGINX_KAFKA_PORT}   ||= 9092;
    # An address where nothing listens: the discard port of a loopback address that nobody uses.
    $ENV{TEST_NGINX_DEAD_BROKER}  ||= '127.0.0.9:9';
}

# Test::Nginx ignores a section that it does not know: a misspelt check would check nothing.
my %sections = map { $_ => 1 } qw(abort access_log config error_code error_code_like error_log
    http_config ignore_response log_level main_config more_headers must_die no_access_log no_error_log
    pipelined_requests raw_request raw_response_headers_like raw_response_headers_unlike request
    response_body response_body_like response_body_unlike response_headers skip_nginx timeout
    user_files wait);
my @own = qw(records queued not_produced fault cluster_fault location_fault remedy);
# The project's runner is as strict by itself; the genuine one does not look at this hash.
$sections{$_} = $Test::Nginx::Socket::SECTIONS{$_} = 1 for @own;

# The cluster that blocks without an http_config of their own use.
our $CLUSTER = 'kafka_cluster main { bootstrap_servers 127.0.0.1:$TEST_NGINX_KAFKA_PORT; }';

# Blocks that show a faulty configuration:
#
#   --- fault            lines of the http block
#   --- cluster_fault    lines of kafka_cluster main { }
#   --- location_fault   lines of location /t { }
#   --- remedy           a regular expression for what the message says
#
# One line is marked with "#!": the message must name that file and that line. The lines go to a file
# that the configuration includes, so that their numbers do not depend on the runner.
sub expand_fault {
    my $block = shift;
    my ($kind) = grep { defined $block->$_ } qw(fault cluster_fault location_fault) or return;
    my $text = $block->$kind;
    if ($kind eq 'cluster_fault') {
        $text .= "bootstrap_servers 127.0.0.1:9092;\n" if $text !~ /bootstrap_servers/;
        $text = "kafka_cluster main {\n$text}\n";
    } elsif ($kind eq 'location_fault') {
        $text .= "kafka_pass main;\n" if $text !~ /kafka_pass/;
        $text .= "kafka_topic t1;\n" if $text !~ /kafka_topic/;
        $text = "location /t {\n$text}\n";
    }
    my @lines = split /\n/, $text;
    my ($marked) = grep { $lines[$_ - 1] =~ /#!/ } 1 .. @lines;
    die $block->name . ' marks no line with #!' unless $marked;
    chomp(my $remedy = $block->remedy);
    $block->set_value('user_files', ">>> fault.conf\n$text");
    $block->set_value($kind eq 'location_fault' ? 'config' : 'http_config', 'include ../html/fault.conf;');
    $block->set_value('config', '') unless defined $block->config;
    $block->set_value('must_die', '');
    $block->set_value('error_log', [qr/\[emerg\] .*(?:$remedy).* in \S*fault\.conf:$marked$/]);
}

# Called by main, after `use Test::Nginx::Socket`. The defaults of every block.
sub prepare {
    main::log_level('info');
    main::master_on();
    main::no_shuffle();
    main::no_long_string();
    main::check_accum_error_log();
    main::add_block_preprocessor(sub {
        my $block = shift;
        my @unknown = grep { !$sections{$_} } @{ $block->_section_order };
        die $block->name . " has unknown sections: @unknown\n" if @unknown;
        $block->set_value('main_config', "load_module $ENV{TEST_NGINX_KAFKA_MODULE};\n" . ($block->main_config // ''));
        expand_fault($block);
        $block->set_value('http_config', $CLUSTER) if !defined $block->http_config;
        if (defined $block->must_die) {
            $block->set_value('request', 'GET /') if !defined $block->request;
        } elsif (!defined $block->no_error_log) {
            $block->set_value('no_error_log', "[alert]\n[emerg]\n[crit]\npanicked");
        }
    });
    return 1;
}

1;
