# SPDX-License-Identifier: MIT
# The plots: intended and measured shares; the card over time when one tenant comes and goes, when a weight changes,
# and on the day of requests.
package Bench::Governor::Plot;

use strict;
use warnings;

use Bench::Stats;

my @colours = ('#2e9e6b', '#3b6fb6', '#d08a2e', '#8a8f98');
my ($left, $top, $width, $height) = (60, 50, 640, 220);

sub text {
    my ($x, $y, $words, $anchor) = @_;
    return sprintf '<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>', $x, $y, $anchor // 'start', $words;
}

sub frame {
    my ($title, $h, @inside) = @_;
    my ($w, $all) = ($left + $width + 30, $h + $top + 40);
    return join "\n", qq(<svg xmlns="http://www.w3.org/2000/svg" width="$w" height="$all" font-family="sans-serif" font-size="12">),
        '<rect width="100%" height="100%" fill="white"/>', text($left, 18, $title), @inside, '</svg>', '';
}

sub legend {
    my @names = @_;
    my ($x, @svg) = ($left);
    for my $i (0 .. $#names) {
        push @svg, sprintf('<rect x="%d" y="26" width="11" height="11" fill="%s"/>', $x, $colours[$i]), text($x + 16, 36, $names[$i]);
        $x += 150;
    }
    return @svg;
}

# Series of [name, values], each value a part of the card in one bin of time.
sub over_time {
    my ($title, $bin, $first, @series) = @_;
    my $bins = @{ $series[0][1] };
    my $y = sub { $top + $height * (1 - ($_[0] > 1.1 ? 1.1 : $_[0]) / 1.1) };
    my @svg = legend(map { $_->[0] } @series);
    for my $tick (0, 0.25, 0.5, 0.75, 1) {
        push @svg, sprintf('<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#ddd"/>', $left, $y->($tick), $left + $width,
            $y->($tick)), text($left - 8, $y->($tick) + 4, 100 * $tick . ' %', 'end');
    }
    for my $part (0 .. 8) {
        push @svg, text($left + $width * $part / 8, $top + $height + 16, sprintf('%.2g s', $first + $bin * $bins * $part / 8), 'middle');
    }
    for my $i (0 .. $#series) {
        my $n = 0;
        my $points = join ' ', map { sprintf '%.1f,%.1f', $left + $width * ($n++ + 0.5) / $bins, $y->($_) } @{ $series[$i][1] };
        push @svg, qq(<polyline points="$points" fill="none" stroke-width="1.5" stroke="$colours[$i]"/>);
    }
    return frame($title, $height, @svg);
}

# A tenant's work in each bin, as a part of the card's capacity ($per_second batches).
sub bins {
    my ($result, $from, $to, $bin, $per_second) = @_;
    my @bins;
    for (my $at = $from; $at + $bin / 2 < $to; $at += $bin) {
        push @bins, Bench::Stats::done_between($result->{ends}, $at, $at + $bin) / $bin / $per_second;
    }
    return \@bins;
}

# The card's speed in batches as they were made in this run: $lengths by name, in any unit, of the tenants' batches.
sub timeline {
    my ($results, $title, $from, $to, $bin, $lengths) = @_;
    my ($work, @names) = (0, sort keys %$results);
    my %length = map { $_ => $lengths->{$_} // 1 } @names;
    $work += $length{$_} * Bench::Stats::done_between($results->{$_}{ends}, $from, $to) for @names;
    my $speed = $work / ($to - $from);
    return over_time($title, $bin, $from, map { [$_, bins($results->{$_}, $from, $to, $bin, $speed / $length{$_})] } @names);
}

sub shares {
    my ($result) = @_;
    my $parts = $result->parts;
    my ($y, @svg) = ($top, legend('with the governor', 'without'));
    for my $name (sort keys %$parts) {
        my ($row, $weight) = split / /, $name;
        push @svg, text($left, $y + 12, "$row, weight $weight");
        for my $i (0, 1) {
            my $seen = $parts->{$name}{ (qw(value without))[$i] } or next;
            my $share = Bench::Stats::median(@$seen);
            push @svg, sprintf('<rect x="%d" y="%d" width="%.1f" height="9" fill="%s"/>', $left + 240, $y + 10 * $i, 4 * $share,
                $colours[$i]), text($left + 246 + 4 * $share, $y + 9 + 10 * $i, sprintf '%.2f %%', $share);
        }
        $y += 30;
    }
    return frame('Shares of the card by batches done', $y - $top, @svg);
}

sub write_all {
    my ($result, $dir) = @_;
    my $kept = $result->{kept};
    my %files = (shares => %{ $result->parts } ? shares($result) : undef);
    $files{soft} = $kept->{soft} && timeline($kept->{soft}, 'Equal weights, one tenant comes and goes', 0.5, 4.5, 0.02);
    $files{change} = $kept->{change} && timeline($kept->{change}, 'Weights 100:100, from 2 s on 25:100', 1.5, 2.5, 0.02);
    $files{day} = $kept->{day} && timeline($kept->{day}, 'Requests with priority and an offline job, a day in 20 s', 0, 20,
        0.25, { offline => 5 });
    for my $name (grep { $files{$_} } keys %files) {
        open my $out, '>', "$dir/governor-$name.svg" or die "$dir/governor-$name.svg: $!\n";
        print {$out} $files{$name};
        close $out or die "$dir/governor-$name.svg: $!\n";
    }
    return;
}

1;
