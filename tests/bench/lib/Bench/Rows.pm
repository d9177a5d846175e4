# SPDX-License-Identifier: MIT
# The rows of the result and their goals. A goal gets the row's medians by place and says whether it is
# reached; undef if a value that it compares with is missing.
package Bench::Rows;

use strict;
use warnings;

# Shares of the peer's speed; $less: less is faster.
sub share {
    my ($less, $mine, $other) = @_;
    return if !defined $mine || !defined $other || !$other;
    return $less ? 'inf' : 0 if !$mine;
    return $less ? $other / $mine : $mine / $other;
}

sub at_least {
    my ($part, $peer, $less) = @_;
    my $text = "at least $part of $peer";
    return [$text, sub { my $s = share($less, $_[0]{ours}, $_[0]{$peer}); defined $s ? $s >= $part : undef }];
}

# Noise of two equal runs must not count as being behind: 3 %, as in the other goals.
sub not_behind { my ($less) = @_; return ['not behind qemu', at_least(0.97, 'qemu', $less)->[1]] }

sub both {
    my ($first, $second) = @_;
    return ["$first->[0]; $second->[0]", sub {
        my @results = map { $_->[1]->(@_) } $first, $second;
        return if grep { !defined } @results;
        return !grep { !$_ } @results;
    }];
}

sub at_most {
    my ($limit) = @_;
    return ["at most $limit", sub { defined $_[0]{ours} ? $_[0]{ours} <= $limit : undef }];
}

sub no_less {
    my ($limit) = @_;
    return ["at least $limit", sub { defined $_[0]{ours} ? $_[0]{ours} >= $limit : undef }];
}

my $tiny = ['(ours - passthrough) at most 0.5 x passthrough', sub {
    my ($m) = @_;
    return if !defined $m->{ours} || !defined $m->{passthrough};
    return $m->{ours} - $m->{passthrough} <= 0.5 * $m->{passthrough};
}];
my $none = ['', sub { return }];

our @rows = (
    ['heavy', 'GFLOP/s', both(at_least(0.97, 'passthrough', 0), not_behind(0))],
    ['dispatch-2ms', 'ms', both(at_least(0.97, 'passthrough', 1), not_behind(1))],
    ['first-touch', 'ms per 64 MiB', both(at_least(0.9, 'passthrough', 1), not_behind(1))],
    ['upload', 'MiB/s', both(at_least(0.97, 'passthrough', 0), not_behind(0))],
    ['download', 'MiB/s', both(at_least(0.97, 'passthrough', 0), not_behind(0))],
    ['tiny-median', 'us', both($tiny, not_behind(1))],
    ['tiny-p99', 'us', not_behind(1)],
    ['burst', 'us per submit', not_behind(1)],
    ['context', 'ms', not_behind(1)],
    ['clpeak', 's', not_behind(1)],
    ['define-start', 'ms', $none],
    ['engine-ready', 'ms', $none],
    ['attach', 'ms', $none],
    ['detach', 'ms', $none],
    ['two-guests', 'of one guest', no_less(0.97)],
    ['idle-private', 'MiB', at_most(24)],
    ['idle-pss', 'MiB', $none],
    ['idle-kernel', 'KiB', at_most(256)],
    ['idle-wakeups', 'per second', at_most(0)],
    ['doorbells-load', 'per 1000 submits', at_most(20)],
    ['doorbells-tiny', 'per 1000 submits', $none],
    ['interrupts-load', 'per 1000 submits', not_behind(1)],
    ['interrupts-tiny', 'per 1000 submits', not_behind(1)],
    ['exits-load', 'per 1000 submits', not_behind(1)],
    ['exits-tiny', 'per 1000 submits', not_behind(1)],
    ['cpu-2ms', 'host CPU ms per dispatch', not_behind(1)],
    ['cpu-tiny', 'host CPU ms per submit', not_behind(1)],
    ['cpu-load', 'host CPU ms per submit', not_behind(1)],
    ['first-touch-faults', 'window faults per 64 MiB', $none],
    ['first-touch-exits', 'per 64 MiB', not_behind(1)],
    ['vgpus-64', 'usable of 64', no_less(64)],
    ['vgpus-64-start', '64th start by the first', at_most(1.2)],
);

1;
