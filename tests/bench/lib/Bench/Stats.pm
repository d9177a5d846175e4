# SPDX-License-Identifier: MIT
# Medians and their intervals. No distribution is assumed: samples of a busy machine have no known one.
package Bench::Stats;

use strict;
use warnings;

sub quantile {
    my ($q, @values) = @_;
    my @sorted = sort { $a <=> $b } @values;
    my $at = $q * $#sorted;
    my $low = int $at;
    return $sorted[$low] if $low == $#sorted;
    return $sorted[$low] + ($at - $low) * ($sorted[$low + 1] - $sorted[$low]);
}

sub median { return quantile(0.5, @_) }

# Confidence that the true median lies between the k-th lowest and the k-th highest of n samples.
sub confidence {
    my ($n, $k) = @_;
    my ($outside, $ways) = (0, 1);
    for my $i (0 .. $k - 1) {
        $outside += $ways;
        $ways = $ways * ($n - $i) / ($i + 1);
    }
    return 1 - 2 * $outside / 2**$n;
}

# Median with the narrowest such interval that still has 90 % confidence, or all if none has.
sub summary {
    my (@values) = @_;
    my @sorted = sort { $a <=> $b } @values;
    my $n = @sorted or return;
    my $k = 1;
    $k++ while 2 * ($k + 1) <= $n && confidence($n, $k + 1) >= 0.9;
    return { median => median(@sorted), low => $sorted[$k - 1], high => $sorted[-$k], n => $n };
}

# Batches of work in a period, by the end of each; parts of those at its borders.
sub done_between {
    my ($ends, $from, $to) = @_;
    my ($done, $last) = (0, 0);
    for my $end (@$ends) {
        my ($a, $b) = ($last > $from ? $last : $from, $end < $to ? $end : $to);
        $done += ($b - $a) / ($end - $last) if $b > $a && $end > $last;
        $last = $end;
    }
    return $done;
}

1;
