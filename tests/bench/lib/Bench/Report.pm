# SPDX-License-Identifier: MIT
# Collects the rounds' values and makes data-path.json and a table of them.
package Bench::Report;

use strict;
use warnings;

use JSON::PP ();
use Bench::Place;
use Bench::Rows;
use Bench::Stats;

sub new { return bless { seen => {} }, shift }

# One round's values of a place, by row.
sub add {
    my ($self, $place, $values) = @_;
    push @{ $self->{seen}{$_}{$place} }, $values->{$_} for keys %$values;
    return;
}

sub rows {
    my ($self) = @_;
    my @rows;
    for my $row (@Bench::Rows::rows) {
        my ($name, $unit, $goal) = @$row;
        my $seen = $self->{seen}{$name} or next;
        my %by_place = map { $_ => $seen->{$_} && Bench::Stats::summary(@{ $seen->{$_} }) } @Bench::Place::names;
        my %medians = map { $_ => $by_place{$_} && $by_place{$_}{median} } @Bench::Place::names;
        my $met = $goal->[1]->(\%medians);
        push @rows, { row => $name, unit => $unit, %by_place, goal => $goal->[0],
            met => defined $met ? ($met ? JSON::PP::true : JSON::PP::false) : undef };
    }
    return \@rows;
}

sub write_json {
    my ($self, $file) = @_;
    open my $out, '>', $file or die "$file: $!\n";
    print {$out} JSON::PP->new->pretty->canonical->encode({ rows => $self->rows });
    close $out or die "$file: $!\n";
    return;
}

sub short {
    my ($value) = @_;
    return sprintf '%.0f', $value if abs $value >= 1000;
    return sprintf '%.4g', $value;
}

sub cell {
    my ($summary) = @_;
    return '-' if !$summary;
    return short($summary->{median}) if $summary->{n} < 2;
    return sprintf '%s (%s-%s)', map { short($summary->{$_}) } qw(median low high);
}

# A table that is plain text and Markdown alike.
sub table {
    my ($self) = @_;
    my @lines = (['row', 'unit', @Bench::Place::names, 'goal', 'met']);
    for my $row (@{ $self->rows }) {
        my $met = defined $row->{met} ? ($row->{met} ? 'yes' : 'no') : '';
        push @lines, [$row->{row}, $row->{unit}, (map { cell($row->{$_}) } @Bench::Place::names), $row->{goal}, $met];
    }
    my @width = map { my $i = $_; (sort { $b <=> $a } map { length $_->[$i] } @lines)[0] } 0 .. $#{ $lines[0] };
    my @text = map { my $line = $_; '| ' . join(' | ', map { sprintf '%-*s', $width[$_], $line->[$_] } 0 .. $#width) . ' |' }
        @lines;
    splice @text, 1, 0, '| ' . join(' | ', map { '-' x $_ } @width) . ' |';
    return join "\n", @text, '';
}

1;
