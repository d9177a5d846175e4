# SPDX-License-Identifier: MIT
# Tenants: governor-load processes that are started together, and their results.
package Bench::Governor::Load;

use strict;
use warnings;

use JSON::PP ();
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC sleep);
use POSIX ();
use Bench::Governor::Machine;

our $program = 'build/bench/governor-load/governor-load';
my %running;

# One processor: software Vulkan with threads of its own would only take turns on it.
my %driver = (VK_DRIVER_FILES => '/usr/share/vulkan/icd.d/lvp_icd.json', LP_NUM_THREADS => 0);

# $env: of a slice (Bench::Governor::Card::env), or empty: not governed. A command of its own with `command`.
sub start {
    my ($name, $env, @args) = @_;
    pipe my $in, my $to or die "pipe: $!\n";
    pipe my $from, my $out or die "pipe: $!\n";
    my $pid = fork // die "fork: $!\n";
    if (!$pid) {
        open STDIN, '<&', $in or POSIX::_exit(126);
        open STDOUT, '>&', $out or POSIX::_exit(126);
        Bench::Governor::Machine::enter($name);
        %ENV = (%ENV, %driver, %$env);
        @args = Bench::Governor::Machine::pinned(@args);
        exec { $args[0] } @args or POSIX::_exit(127);
    }
    $to->autoflush(1);
    my $self = bless { name => $name, pid => $pid, to => $to, from => $from, args => "@args" }, __PACKAGE__;
    return $running{$pid} = $self;
}

sub tenant {
    my ($name, $env, @args) = @_;
    return start($name, $env, $program, @args, '--name', $name, '--wait');
}

sub line {
    my ($self) = @_;
    my $text = readline $self->{from};
    return $text if defined $text;
    $self->reap;
    die "$self->{name} ended without a word: $self->{args}\n";
}

# All of it, when it has ended.
sub rest {
    my ($self) = @_;
    local $/ = undef;
    my $text = readline($self->{from}) // '';
    die "$self->{name} failed: $self->{args}\n$text" if $self->reap;
    return $text;
}

sub reap {
    my ($self) = @_;
    waitpid $self->{pid}, 0;
    delete $running{ $self->{pid} };
    return $?;
}

sub now { return clock_gettime(CLOCK_MONOTONIC) }

sub sleep_until {
    my ($at) = @_;
    while ((my $left = $at - now()) > 0) { sleep $left }
    return;
}

# Starts tenants at the same time and waits for all. Options: at => [[seconds, sub], …] actions during the run;
# between => [from, to]: processor time is taken between these (seconds from the start). Returns their results by
# name, each with ends (seconds), and cpu (seconds between).
sub together {
    my ($tenants, %opt) = @_;
    $_->line for @$tenants;
    my $start = now() + 0.05;
    $_->{to}->printf("%.0f\n", $start * 1e9) for @$tenants;
    my %used;
    my @todo = @{ $opt{at} // [] };
    for my $at (@{ $opt{between} // [] }) {
        push @todo, [$at, sub { push @{ $used{ $_->{name} } }, Bench::Governor::Machine::used($_->{name}) for @$tenants }];
    }
    for my $todo (sort { $a->[0] <=> $b->[0] } @todo) {
        sleep_until($start + $todo->[0]);
        $todo->[1]->();
    }
    my %results;
    for my $tenant (@$tenants) {
        my $result = JSON::PP::decode_json($tenant->rest);
        $result->{ends} = [map { $_ / 1e6 } @{ delete $result->{ends_us} }];
        my $cpu = $used{ $tenant->{name} };
        $result->{cpu} = $cpu->[1] - $cpu->[0] if $cpu && defined $cpu->[1];
        $results{ $tenant->{name} } = $result;
        Bench::Governor::Machine::leave($tenant->{name});
    }
    return \%results;
}

# A lone command to its end.
sub alone {
    my ($name, $env, @args) = @_;
    my $text = start($name, $env, @args)->rest;
    Bench::Governor::Machine::leave($name);
    return $text;
}

sub stop_all {
    for my $load (values %running) {
        kill KILL => $load->{pid};
        $load->reap;
    }
    return;
}

1;
