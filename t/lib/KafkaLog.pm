package KafkaLog;

# What really is in Kafka, as kcat (librdkafka) reads it. Adds three sections to the data format:
#
#   --- records eval      [RECORD…] per request: what stands at the coordinates that the answer gives
#   --- queued eval       { topic, value, … }: a record that appears sooner or later (asynchronous answers)
#   --- not_produced eval { topic, value }: no record of this value is in the topic
#
# RECORD is a hash of what to compare: topic, partition, value, key (undef: null), headers ("a=1,b=2"),
# timestamp (ms, or a code reference that gets ms). A request that makes several records has an array.

use strict;
use warnings;
use Test::More ();
use Time::HiRes qw(sleep time);

# kcat's format: lengths first, since keys, values and headers may hold any byte. -1 is a null.
my $FORMAT = '%K %S %T %p %o\n%k%s%h\n\036';

sub kcat {
    my @arguments = @_;
    open my $pipe, '-|:raw', 'timeout', 20, 'kcat', '-C', '-q', '-b', "127.0.0.1:$ENV{TEST_NGINX_KAFKA_PORT}",
        '-X', 'fetch.wait.max.ms=20', '-X', 'topic.metadata.refresh.fast.interval.ms=20', @arguments, '-f', $FORMAT
        or die "kcat: $!";
    local $/;
    my $output = <$pipe> // '';
    my @records;
    while ($output =~ s/\A(-?\d+) (-?\d+) (-?\d+) (\d+) (\d+)\n//) {
        my ($key_size, $size, $timestamp, $partition, $offset) = ($1, $2, $3, $4, $5);
        my $key = $key_size < 0 ? undef : substr $output, 0, $key_size, '';
        my $value = $size < 0 ? undef : substr $output, 0, $size, '';
        $output =~ s/\A(.*?)\n\036//s or die 'kcat: cut off';
        push @records, { key => $key, value => $value, timestamp => $timestamp, partition => $partition,
            offset => $offset, headers => $1 };
    }
    return @records;
}

sub record_at {
    my ($topic, $partition, $offset) = @_;
    my ($record) = kcat('-t', $topic, '-p', $partition, '-o', $offset, '-c', 1);
    return $record;
}

sub show {
    my $bytes = shift;
    return 'null' unless defined $bytes;
    my $text = length $bytes > 60 ? substr($bytes, 0, 60) . "… (" . length($bytes) . ' bytes)' : $bytes;
    $text =~ s/([^\x20-\x7e])/sprintf '\\x%02x', ord $1/ge;
    return "\"$text\"";
}

sub same { my ($x, $y) = @_; return defined $x ? defined $y && $x eq $y : !defined $y }

sub compare {
    my ($name, $record, $want, $topic) = @_;
    if (!$record) { Test::More::fail("$name - the record is in the log"); return }
    for my $field (qw(value key headers)) {
        next unless exists $want->{$field};
        Test::More::ok(same($record->{$field}, $want->{$field}), "$name - $field")
            or Test::More::diag("got " . show($record->{$field}) . ", expected " . show($want->{$field}));
    }
    Test::More::is($topic, $want->{topic}, "$name - topic") if exists $want->{topic};
    Test::More::is($record->{partition}, $want->{partition}, "$name - partition") if exists $want->{partition};
    if (exists $want->{timestamp}) {
        my $t = $want->{timestamp};
        ref $t ? Test::More::ok($t->($record->{timestamp}), "$name - timestamp $record->{timestamp}")
            : Test::More::is($record->{timestamp}, $t, "$name - timestamp");
    }
}

# (topic, partition, offset) of each record of an answer.
sub coordinates {
    my $body = shift // '';
    my @all;
    push @all, [$1, $2, $3] while $body =~ /"topic":"([^"]+)","partition":(\d+),"offset":(\d+)/g;
    return @all;
}

sub check_records {
    my ($name, $body, $want) = @_;
    my @want = ref $want eq 'ARRAY' ? @$want : ($want);
    my @got = coordinates($body);
    Test::More::is(scalar @got, scalar @want, "$name - records in the answer");
    for my $i (0 .. $#want) {
        my $at = $got[$i] or last;
        compare("$name, record $i", record_at(@$at), $want[$i], $at->[0]);
    }
}

sub find {
    my ($topic, $value) = @_;
    return grep { same($_->{value}, $value) } kcat('-t', $topic, '-o', 'beginning', '-e');
}

sub check_queued {
    my ($name, $want) = @_;
    my @found;
    my $end = time + 10;
    until (@found) {
        @found = find($want->{topic}, $want->{value});
        last if time > $end;
        sleep 0.1 unless @found;
    }
    Test::More::is(scalar @found, 1, "$name - the queued record is in the log once");
    compare($name, $found[0], $want, $want->{topic}) if @found;
}

sub prepare {
    main::add_response_body_check(sub {
        my ($block, $body, $i, $repeated, $dry_run) = @_;
        return if $dry_run;
        my $name = $block->name;
        my $nth = sub { my $all = shift; ref $all eq 'ARRAY' ? $all->[$i] : $i ? undef : $all };
        if (defined $block->records && defined(my $want = $nth->($block->records))) {
            check_records("$name, request $i", $body, $want);
        }
        if (defined $block->queued && defined(my $want = $nth->($block->queued))) {
            check_queued("$name, request $i", $want);
        }
        if (defined $block->not_produced && defined(my $what = $nth->($block->not_produced))) {
            Test::More::is(scalar(find(@$what{qw(topic value)})), 0, "$name, request $i - nothing in the log");
        }
    });
}

1;
