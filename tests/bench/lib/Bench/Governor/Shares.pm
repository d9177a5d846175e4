# SPDX-License-Identifier: MIT
# Scenarios of work that never ends: shares, caps, throughput, a tenant alone for a while, shares that change.
package Bench::Governor::Shares;

use strict;
use warnings;

use List::Util qw(max sum);
use Bench::Governor::Context;
use Bench::Governor::Load;
use Bench::Stats;

my $batch_ms = 2;

# Tenants by their weights, from the lightest.
sub tenants {
    my ($bench, $weights, $seconds, @options) = @_;
    my $n = 0;
    return [map { ['t' . ++$n, { weight => $_ }, 'closed', $bench->batches($batch_ms), '--seconds', $seconds, @options] }
        @$weights];
}

# The worst tenant's difference from its share, in percent of that share.
sub worst {
    my ($weights, $shares) = @_;
    my $all = sum(@$weights);
    return max map { 100 * abs($shares->{'t' . ($_ + 1)} * $all / $weights->[$_] - 1) } 0 .. $#$weights;
}

sub share_error {
    my ($bench, $row, $weights, @options) = @_;
    my ($seconds, $settle) = (11, $Bench::Governor::Context::settle);
    my %timing = (between => [$settle, $seconds]);
    my ($on, $off) = $bench->both(tenants($bench, $weights, $seconds, @options), %timing);
    my ($with, $without) = map { $_ && Bench::Governor::Context::shares($_, $settle, $seconds) } $on, $off;
    $bench->add($row, $with && worst($weights, $with->{done}), by_cpu => $with && $with->{cpu} && worst($weights, $with->{cpu}),
        without => worst($weights, $without->{done}));
    for my $i (0 .. $#$weights) {
        next if !$with || $i && $weights->[$i] == $weights->[$i - 1];
        my $name = 't' . ($i + 1);
        $bench->add("$row $weights->[$i]", 100 * $with->{done}{$name}, without => 100 * $without->{done}{$name});
    }
    return;
}

sub share_30_70 { share_error($_[0], 'share-30-70', [30, 70]); return }
sub share_30_70_pipelined { share_error($_[0], 'share-30-70-pipelined', [30, 70], '--depth', 4); return }
sub share_10_20_70 { share_error($_[0], 'share-10-20-70', [10, 20, 70]); return }
sub share_8_equal { share_error($_[0], 'share-8-equal', [(100) x 8]); return }

# All tenants together compared with one of them alone without the governor.
sub throughput {
    my ($bench) = @_;
    my ($seconds, $settle) = (6, $Bench::Governor::Context::settle);
    for my $n (2, 4, 8) {
        my ($alone, $on, $off) = $bench->around($batch_ms, sub { $bench->both(tenants($bench, [(100) x $n], $seconds)) });
        my ($with, $without) = map { $_ && Bench::Governor::Context::shares($_, $settle, $seconds)->{total}
            / ($seconds - $settle) / $alone } $on, $off;
        $bench->add("throughput-$n", $with, without => $without);
    }
    return;
}

# One tenant alone with the governor compared with the same without.
sub lone {
    my ($bench) = @_;
    return if !$bench->{governed};
    my @seen;
    for my $turn (1 .. 3) {
        my $off = $bench->alone($batch_ms);
        my $results = $bench->run(tenants($bench, [100], $Bench::Governor::Context::alone_seconds));
        push @seen, @{ $results->{t1}{ends} } / $results->{t1}{ends}[-1] / $off;
    }
    $bench->add('lone', Bench::Stats::median(@seen));
    return;
}

# A hard cap of 20 %, on an otherwise idle GPU.
sub cap {
    my ($bench) = @_;
    return if !$bench->{governed};
    my ($seconds, $settle) = (11, $Bench::Governor::Context::settle);
    my $tenants = [['t1', { cap => 20, hard => 'true' }, 'closed', $bench->batches($batch_ms), '--seconds', $seconds]];
    my ($alone, $results) = $bench->around($batch_ms, sub { $bench->run($tenants, between => [$settle, $seconds]) });
    my $done = Bench::Stats::done_between($results->{t1}{ends}, $settle, $seconds) / ($seconds - $settle);
    my $cpu = $results->{t1}{cpu};
    $bench->add('cap-20', 100 * $done / $alone, by_cpu => $cpu && 100 * $cpu / ($seconds - $settle));
    return;
}

# The same if one batch is more than a second's budget. Counted from the end of one batch to that of the last: a batch
# that has begun but not ended does not count.
sub cap_long {
    my ($bench) = @_;
    return if !$bench->{governed};
    my ($ms, $seconds) = (500, $bench->{long_seconds} // 60);
    my $tenants = [['t1', { cap => 20, hard => 'true' }, 'closed', $bench->batches($ms), '--seconds', $seconds]];
    my ($alone, $results) = $bench->around($ms, sub { $bench->run($tenants, between => [0, $seconds]) });
    my @ends = @{ $results->{t1}{ends} };
    die "the cap let no two batches through\n" if @ends < 2;
    my $cpu = $results->{t1}{cpu};
    $bench->add('cap-20-500ms', 100 * $#ends / ($ends[-1] - $ends[0]) / $alone, by_cpu => $cpu && 100 * $cpu / $seconds);
    return;
}

# One works always, the other 300 of every 1000 ms. From 20 ms after its last batch the first one is alone on the
# card.
sub soft {
    my ($bench) = @_;
    my $tenants = [map { [$_->[0], { weight => 100 }, 'closed', $bench->batches($batch_ms), '--seconds', 10, @{ $_->[1] }] }
        ['always', []], ['sometimes', ['--on-ms', 300, '--off-ms', 700]]];
    my ($alone, $on, $off) = $bench->around($batch_ms, sub { $bench->both($tenants) });
    my ($with, $without) = map { $_ && alone_for_a_while($_, $alone) } $on, $off;
    $bench->add('soft', $with->[0], without => $without->[0]);
    $bench->add('soft-lost', $with->[1], without => $without->[1]);
    $bench->{result}->keep('soft', $on) if $on;
    return;
}

# Median share of the card from 20 ms after the other went idle, and milliseconds lost in the first 200.
sub alone_for_a_while {
    my ($results, $alone) = @_;
    my (@share, @lost);
    for my $cycle (1 .. 8) {
        my ($idle) = reverse grep { $_ < $cycle + 0.6 } @{ $results->{sometimes}{ends} };
        my ($from, $to) = ($idle + 0.02, $cycle + 0.99);
        my $done = Bench::Stats::done_between($results->{always}{ends}, $from, $to);
        push @share, $done / ($to - $from) / $alone;
        push @lost, 1000 * (0.2 - Bench::Stats::done_between($results->{always}{ends}, $idle, $idle + 0.2) / $alone);
    }
    return [Bench::Stats::median(@share), Bench::Stats::median(@lost)];
}

# From 50:50 to 20:80. The first one's work beyond its new share shows how long it still had the old one.
sub change {
    my ($bench) = @_;
    return if !$bench->{governed};
    my ($at, $seconds) = (2, 6);
    my $results = $bench->run(tenants($bench, [100, 100], $seconds), card => sub {
        my ($card) = @_;
        return [[$at, sub { $card->set('t1', { weight => 25 }) }]];
    });
    my @old = shares_between($results, 1, $at);
    my @new = shares_between($results, $at + 1, $seconds);
    my @first = shares_between($results, $at, $at + 0.5);
    die sprintf("the shares did not change: %.3f, then %.3f\n", $old[0], $new[0]) if $old[0] - $new[0] < 0.1;
    $bench->add('change', 500 * ($first[0] - $new[0]) / ($old[0] - $new[0]));
    $bench->{result}->keep('change', $results);
    return;
}

sub shares_between {
    my ($results, $from, $to) = @_;
    my $done = Bench::Governor::Context::shares($results, $from, $to)->{done};
    return map { $done->{$_} } sort keys %$done;
}

1;
