# SPDX-License-Identifier: MIT
# What the scenarios share: the lengths of batches on this machine, the work of a lone tenant, and a set of tenants
# with or without the governor.
package Bench::Governor::Context;

use strict;
use warnings;

use JSON::PP ();
use List::Util qw(sum);
use Bench::Governor::Card;
use Bench::Governor::Load;
use Bench::Stats;

# How long a lone tenant runs to measure the card.
our $alone_seconds = 2;
# The start of a run, which is not counted: the first contention, the first estimates.
our $settle = 1;

# $result: Bench::Governor::Result. $governed: whether there is a governor.
sub new {
    my ($class, $result, $governed) = @_;
    my @found = map { JSON::PP::decode_json(Bench::Governor::Load::alone('calibrate', {}, $Bench::Governor::Load::program,
        'calibrate'))->{iterations} } 1 .. 5;
    my $two_ms = Bench::Stats::median(@found);
    return bless { per_ms => $two_ms / 2, result => $result, governed => $governed }, $class;
}

sub add { my ($self, $row, $value, %more) = @_; return $self->{result}->add($row, $value, %more) }

# The options of batches of this length.
sub batches { my ($self, $ms) = @_; return ('--iterations', int($ms * $self->{per_ms})) }

# Batches a second of a tenant that is alone on the card; $env as for tenants.
sub alone {
    my ($self, $ms, $env, $seconds) = @_;
    $seconds //= $alone_seconds;
    my $tenant = Bench::Governor::Load::tenant('alone', $env // {}, 'closed', $self->batches($ms), '--seconds', $seconds);
    my $ends = Bench::Governor::Load::together([$tenant])->{alone}{ends};
    return @$ends / $ends->[-1];
}

# The same before and after $run, in the middle: a machine's speed drifts. Returns it, and $run's result.
sub around {
    my ($self, $ms, $run) = @_;
    my $before = $self->alone($ms);
    my @returned = $run->();
    return (($before + $self->alone($ms)) / 2, @returned);
}

# Runs tenants, each [name, settings of its slice, options of governor-load…]; results by name. Options: those of
# together(); off => 1 without the governor; card => sub that is called with the card, once there is one.
sub run {
    my ($self, $tenants, %opt) = @_;
    my $off = delete $opt{off} || !$self->{governed};
    my $card = $off ? undef : Bench::Governor::Card->new({ map { $_->[0] => $_->[1] } @$tenants });
    my $with_card = delete $opt{card};
    my $todo = $with_card && $card ? $with_card->($card) : [];
    my @loads = map { my ($name, undef, @args) = @$_;
        Bench::Governor::Load::tenant($name, $card ? $card->env($name) : {}, @args) } @$tenants;
    my $results = Bench::Governor::Load::together(\@loads, %opt, at => [@$todo, @{ $opt{at} // [] }]);
    $card->stop if $card;
    return $results;
}

# The same with and without the governor, in alternating order.
sub both {
    my ($self, $tenants, %opt) = @_;
    my @order = $self->{turn}++ % 2 ? (1, 0) : (0, 1);
    @order = (1) if !$self->{governed};
    my %by_off = map { $_ => $self->run($tenants, %opt, off => $_) } @order;
    return @by_off{0, 1};
}

# Each one's share of all work done between two times, by batches and by processor time.
sub shares {
    my ($results, $from, $to) = @_;
    my %done = map { $_ => Bench::Stats::done_between($results->{$_}{ends}, $from, $to) } keys %$results;
    my %cpu = map { $_ => $results->{$_}{cpu} } grep { defined $results->{$_}{cpu} } keys %$results;
    my ($all, $all_cpu) = (sum(values %done), sum(0, values %cpu));
    return {
        done => { map { $_ => $all ? $done{$_} / $all : 0 } keys %done },
        cpu => $all_cpu ? { map { $_ => $cpu{$_} / $all_cpu } keys %cpu } : undef,
        total => $all,
    };
}

1;
