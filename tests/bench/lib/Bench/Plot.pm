# SPDX-License-Identifier: MIT
# The plot: for every row with alternatives, each place compared with passthrough (or, if that has no
# value, with the host itself), on a logarithmic scale. Longer is better in every row.
package Bench::Plot;

use strict;
use warnings;

use Bench::Place;

my %colour = (native => '#8a8f98', passthrough => '#3b6fb6', qemu => '#d08a2e', ours => '#2e9e6b');
my ($left, $width, $bar, $gap) = (150, 640, 11, 16);
my $decades = 2;    # to either side of 1

sub more_is_better { return $_[0] =~ m{/s$} }

sub bars {
    my ($row) = @_;
    my $base = $row->{passthrough} // $row->{native} or return;
    return if !$base->{median};
    my @bars;
    for my $place (@Bench::Place::names) {
        my $is = $row->{$place} or next;
        next if !$is->{median} || !$is->{low} || !$is->{high};
        my @shares = map { more_is_better($row->{unit}) ? $_ / $base->{median} : $base->{median} / $_ }
            @{$is}{qw(median low high)};
        push @bars, [$place, @shares];
    }
    return @bars > 1 ? @bars : ();
}

sub x {
    my ($share) = @_;
    my $log = log($share) / log(10);
    $log = -$decades if $log < -$decades;
    $log = $decades if $log > $decades;
    return $left + $width * ($log + $decades) / (2 * $decades);
}

sub text {
    my ($x, $y, $words, %opt) = @_;
    my $anchor = $opt{anchor} // 'start';
    my $colour = $opt{colour} // '#222';
    return qq(<text x="$x" y="$y" text-anchor="$anchor" fill="$colour">$words</text>);
}

sub axis {
    my ($bottom) = @_;
    my @svg;
    for my $tick ([0.01, '1/100'], [0.1, '1/10'], [0.5, '1/2'], [1, '1'], [2, '2'], [10, '10'], [100, '100']) {
        my $x = x($tick->[0]);
        my $stroke = $tick->[0] == 1 ? '#222' : '#ddd';
        push @svg, qq(<line x1="$x" y1="44" x2="$x" y2="$bottom" stroke="$stroke"/>),
            text($x, $bottom + 16, $tick->[1], anchor => 'middle');
    }
    return @svg;
}

sub svg {
    my ($rows) = @_;
    my ($y, @svg) = (52);
    for my $row (@$rows) {
        my @bars = bars($row) or next;
        push @svg, text($left - 8, $y + $bar * @bars / 2 + 4, $row->{row}, anchor => 'end');
        for (@bars) {
            my ($place, $median, @ends) = @$_;
            my ($one, $at) = (x(1), x($median));
            my ($low, $high) = map { x($_) } sort { $a <=> $b } @ends;
            my ($from, $size) = ($at < $one ? $at : $one, abs($at - $one));
            my $middle = $y + $bar / 2;
            push @svg, sprintf('<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"/>', $from, $y,
                $size < 1 ? 1 : $size, $bar - 1, $colour{$place}),
                sprintf('<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#222"/>', $low, $middle, $high, $middle);
            $y += $bar;
        }
        $y += $gap;
    }
    my ($w, $h, $lx) = ($left + $width + 30, $y + 30, $left);
    my @legend;
    for my $place (@Bench::Place::names) {
        push @legend, qq(<rect x="$lx" y="26" width="11" height="11" fill="$colour{$place}"/>), text($lx + 16, 36, $place);
        $lx += 120;
    }
    return join "\n", qq(<svg xmlns="http://www.w3.org/2000/svg" width="$w" height="$h" font-family="sans-serif" font-size="12">),
        '<rect width="100%" height="100%" fill="white"/>',
        text($left, 16, 'Speed or thrift beside passthrough (= 1); right is better; lines: low to high'),
        @legend, axis($y), @svg, '</svg>', '';
}

sub write_svg {
    my ($rows, $file) = @_;
    open my $out, '>', $file or die "$file: $!\n";
    print {$out} svg($rows);
    close $out or die "$file: $!\n";
    return;
}

1;
