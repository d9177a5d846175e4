# SPDX-License-Identifier: MIT
# The rows of the governor's benchmark, their goals, and the rounds' values of each.
package Bench::Governor::Result;

use strict;
use warnings;

use JSON::PP ();
use Bench::Stats;

sub at_most { my ($limit) = @_; return ["at most $limit", sub { $_[0] <= $limit }] }
sub at_least { my ($limit) = @_; return ["at least $limit", sub { $_[0] >= $limit }] }
sub near { my ($is, $off) = @_; return ["$is +- $off", sub { abs($_[0] - $is) <= $off }] }

my $error = 'worst difference of a tenant from its share, in % of the share';
# Name, unit, goal, what it is.
our @rows = (
    ['submit-ns', 'ns', at_most(300), 'alone: processor time of a submit, beyond that without the governor'],
    ['submit-instructions', 'instructions', at_most(1500), 'alone: the same in instructions'],
    ['measured-instructions', 'instructions', at_most(2000), 'measured: the submitting thread, in instructions'],
    ['program-compute', '%', at_most(0.5), 'alone: more instructions of all of vk-compute'],
    ['program-batches', '%', at_most(0.5), 'alone: more instructions of 100 batches of 2 ms'],
    ['lone', 'of without', at_least(0.98), 'one tenant alone, batches of 2 ms, submit and wait'],
    ['share-30-70', '%', at_most(2), "submit and wait, 2 ms: $error"],
    ['share-30-70-pipelined', '%', at_most(2), "four in flight, 2 ms: $error"],
    ['share-10-20-70', '%', at_most(2), "submit and wait, 2 ms: $error"],
    ['share-8-equal', '%', at_most(2), "submit and wait, 2 ms: $error"],
    ['cap-20', '% of the card', near(20, 1), 'hard cap of 20 %, alone, batches of 2 ms'],
    ['cap-20-500ms', '% of the card', near(20, 2), 'the same, batches of 500 ms'],
    ['throughput-2', 'of one alone', at_least(0.97), 'two equal tenants, batches of 2 ms'],
    ['throughput-4', 'of one alone', at_least(0.97), 'four'],
    ['throughput-8', 'of one alone', at_least(0.97), 'eight'],
    ['soft', 'of the card', at_least(0.98), 'from 20 ms after the other tenant has become idle'],
    ['soft-lost', 'ms', undef, 'of the card lost in the 200 ms after that'],
    ['online-p99', 'offline batches', at_most(1.25), 'latency of bursty requests with priority, beyond that alone'],
    ['offline-kept', 'of what was left', at_least(0.95), 'work of the offline job beside it'],
    ['change', 'ms', at_most(100), 'from a changed weight to changed shares'],
    ['day-busy', '% of the card', at_least(96), 'a day of requests with an offline job'],
    ['day-missed', '% of requests', at_most(1), 'missed deadlines, beyond those alone'],
    ['two-vms', '%', at_most(2), "two VMs of equal weights, batches of 250 ms: $error"],
    ['two-vms-total', 'of one alone', at_least(0.97), 'what both do together'],
);

sub new { return bless { seen => {}, kept => {} }, shift }

# One round's value of a row; more => by_cpu, the same by processor time, and without, that without the governor.
sub add {
    my ($self, $row, $value, %more) = @_;
    push @{ $self->{seen}{$row}{value} }, $value if defined $value;
    for my $kind (grep { defined $more{$_} } keys %more) { push @{ $self->{seen}{$row}{$kind} }, $more{$kind} }
    return;
}

# The runs of one round, for the plots.
sub keep { my ($self, $name, $results) = @_; $self->{kept}{$name} //= $results; return }

sub rows {
    my ($self) = @_;
    my @all;
    for my $known (@rows) {
        my ($name, $unit, $goal, $what) = @$known;
        my $seen = $self->{seen}{$name} or next;
        my %of = map { $_ => Bench::Stats::summary(@{ $seen->{$_} }) } keys %$seen;
        my $is = $of{value};
        push @all, { row => $name, unit => $unit, what => $what, value => $is && $is->{median}, rounds => $is && $is->{n},
            spread => $is && [$is->{low}, $is->{high}], goal => $goal && $goal->[0], met => scalar met($goal, $is),
            map { $_ => $of{$_}{median} } grep { $_ ne 'value' } keys %of };
    }
    return \@all;
}

sub met {
    my ($goal, $is) = @_;
    return if !$goal || !$is;
    return $goal->[1]->($is->{median}) ? JSON::PP::true : JSON::PP::false;
}

# Measured shares, by "row weight".
sub parts { my ($self) = @_; return { map { $_ => $self->{seen}{$_} } grep { / / } keys %{ $self->{seen} } } }

# The document may hold other rows, too, of another benchmark.
sub write_json {
    my ($self, $file) = @_;
    my %mine = map { $_->{row} => 1 } @{ $self->rows };
    my @others;
    if (open my $in, '<', $file) {
        local $/ = undef;
        my $document = eval { JSON::PP::decode_json(scalar <$in>) } // { rows => [] };
        @others = grep { !$mine{ $_->{row} } } @{ $document->{rows} };
    }
    open my $out, '>', $file or die "$file: $!\n";
    print {$out} JSON::PP->new->pretty->canonical->encode({ rows => [@{ $self->rows }, @others] });
    close $out or die "$file: $!\n";
    return;
}

sub short { my ($value) = @_; return defined $value ? sprintf('%.4g', $value) : '-' }

sub table {
    my ($self) = @_;
    my @lines = (['row', 'unit', 'value', 'spread', 'by CPU time', 'without', 'goal', 'met']);
    for my $row (@{ $self->rows }) {
        my $spread = $row->{spread} ? join(' - ', map { short($_) } @{ $row->{spread} }) : '-';
        my $met = defined $row->{met} ? ($row->{met} ? 'yes' : 'no') : '';
        push @lines, [@{$row}{qw(row unit)}, short($row->{value}), $spread, short($row->{by_cpu}), short($row->{without}),
            $row->{goal} // '', $met];
    }
    my @width = map { my $i = $_; (sort { $b <=> $a } map { length $_->[$i] } @lines)[0] } 0 .. $#{ $lines[0] };
    my @text = map { my $line = $_; '| ' . join(' | ', map { sprintf '%-*s', $width[$_], $line->[$_] } 0 .. $#width) . ' |' }
        @lines;
    splice @text, 1, 0, '| ' . join(' | ', map { '-' x $_ } @width) . ' |';
    return join "\n", @text, '';
}

1;
