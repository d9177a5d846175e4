# SPDX-License-Identifier: MIT
# Scenarios of requests with arrival times, beside an offline job that always has work.
package Bench::Governor::Online;

use strict;
use warnings;

use Bench::Governor::Context;
use Bench::Governor::Load;
use Bench::Stats;

my $online_ms = 2;
my $offline_ms = 10;

# $seed: the round's; the three runs of a round get the same requests.
sub online {
    my ($bench, $seconds, @options) = @_;
    return ['online', { weight => 100, priority => 8 }, 'online', $bench->batches($online_ms), '--seconds', $seconds,
        '--seed', $bench->{round} + 1, @options];
}

sub offline {
    my ($bench, $seconds) = @_;
    return ['offline', { weight => 100, priority => 0 }, 'closed', $bench->batches($offline_ms), '--depth', 2,
        '--seconds', $seconds];
}

# The part of the card's time that the tenants' work takes: [online, offline].
sub parts {
    my ($bench, $results, $seconds, $alone_offline) = @_;
    my $offline = Bench::Stats::done_between($results->{offline}{ends}, 0, $seconds) / $alone_offline / $seconds;
    my $per_batch = 1 / $alone_offline * $online_ms / $offline_ms;
    my $online = Bench::Stats::done_between($results->{online}{ends}, 0, $seconds) * $per_batch / $seconds;
    return ($online, $offline);
}

# The requests alone and without the governor; then with the offline job, with the governor and without.
sub runs {
    my ($bench, $seconds, @options) = @_;
    my $alone = $bench->run([online($bench, $seconds, @options)], off => 1)->{online};
    return ($alone, $bench->both([online($bench, $seconds, @options), offline($bench, $seconds)]));
}

# Bursts of four, a fifth of the card in all.
sub bursty {
    my ($bench) = @_;
    my $seconds = 15;
    my @options = ('--rate', 100, '--burst', 4);
    my ($batch, $alone, @runs) = $bench->around($offline_ms, sub { runs($bench, $seconds, @options) });
    my (@late, @kept);
    for my $run (@runs) {
        my ($online, $offline) = $run ? parts($bench, $run, $seconds, $batch) : ();
        push @late, $run && ($run->{online}{latency_us}{p99} - $alone->{latency_us}{p99}) / 1e6 * $batch;
        push @kept, $run && $offline / (1 - $online);
    }
    $bench->add('online-p99', $late[0], without => $late[1]);
    $bench->add('offline-kept', $kept[0], without => $kept[1]);
    return;
}

# A day in 20 s; at noon half of the card is needed online.
sub day {
    my ($bench) = @_;
    my $seconds = 20;
    my @options = ('--rate', 250, '--day', $seconds, '--deadline-ms', 30);
    my ($batch, $alone, @runs) = $bench->around($offline_ms, sub { runs($bench, $seconds, @options) });
    my (@busy, @missed);
    for my $run (@runs) {
        my ($online, $offline) = $run ? parts($bench, $run, $seconds, $batch) : ();
        push @busy, $run && 100 * ($online + $offline);
        push @missed, $run && 100 * ($run->{online}{missed} / $run->{online}{batches} - $alone->{missed} / $alone->{batches});
    }
    $bench->add('day-busy', $busy[0], without => $busy[1]);
    $bench->add('day-missed', $missed[0], without => $missed[1]);
    $bench->{result}->keep('day', $runs[0]) if $runs[0];
    return;
}

1;
