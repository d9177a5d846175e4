# SPDX-License-Identifier: MIT
# What the governor costs a lone tenant: time and instructions of a submission, instructions of whole programs.
# callgrind counts instructions: exactly, also on a machine without access to its counters.
package Bench::Governor::Cost;

use strict;
use warnings;

use JSON::PP ();
use Bench::Governor::Card;
use Bench::Governor::Load;
use Bench::Stats;

# Runs a command in a slice that is alone, or without the governor.
# $governed: 0, 1, or the slice's settings.
sub alone_on_card {
    my ($governed, @command) = @_;
    my $card = $governed ? Bench::Governor::Card->new({ cost => ref $governed ? $governed : { weight => 100 } }) : undef;
    my $text = Bench::Governor::Load::alone('cost', $card ? $card->env('cost') : {}, @command);
    $card->stop if $card;
    return $text;
}

sub submit_ns {
    my ($governed) = @_;
    my $text = alone_on_card($governed, $Bench::Governor::Load::program, 'submit-cost', '--batches', 50_000);
    return JSON::PP::decode_json($text)->{submit_ns};
}

sub submit {
    my ($bench) = @_;
    my (@with, @without);
    for my $turn (1 .. 5) {
        push @without, submit_ns(0);
        push @with, submit_ns(1) if $bench->{governed};
    }
    my $off = Bench::Stats::median(@without);
    $bench->add('submit-ns', @with ? Bench::Stats::median(@with) - $off : undef, without => $off);
    return;
}

# Instructions of a command; of one function of it with --toggle-collect.
sub instructions {
    my ($governed, $options, @command) = @_;
    # A shader cache on disk would make the second run the shorter one.
    my @valgrind = ('env', 'MESA_SHADER_CACHE_DISABLE=true', 'valgrind', '--tool=callgrind', '--callgrind-out-file=/dev/null');
    my $text = alone_on_card($governed, 'sh', '-c', 'exec "$@" 2>&1', 'sh', @valgrind, @$options, @command);
    return $1 if $text =~ /Collected : (\d+)/;
    die "callgrind counted nothing in @command:\n$text\n";
}

sub difference {
    my ($bench, $row, $slice, $scale, $options, @command) = @_;
    my $off = instructions(0, $options, @command);
    my $on = $bench->{governed} ? instructions($slice, $options, @command) : undef;
    $bench->add($row, $scale->($on, $off), without => $off) if defined $on;
    return;
}

sub submit_instructions {
    my ($bench) = @_;
    my $submits = 2000;
    # A slice with a hard cap is always measured.
    my %rows = ('submit-instructions' => 1, 'measured-instructions' => { weight => 100, cap => 99, hard => 'true' });
    for my $row (sort keys %rows) {
        difference($bench, $row, $rows{$row}, sub { ($_[0] - $_[1]) / $submits }, ['--toggle-collect=submit_burst'],
            $Bench::Governor::Load::program, 'submit-cost', '--batches', $submits);
    }
    return;
}

# Everything counts: loading the layer, joining, opening and closing the device, memory, submissions.
sub programs {
    my ($bench) = @_;
    my $percent = sub { 100 * ($_[0] / $_[1] - 1) };
    difference($bench, 'program-compute', 1, $percent, [], 'build/guest/vk-compute', '--rounds', 5);
    # By number: under valgrind a program that ends by the clock would do less on a slower machine.
    difference($bench, 'program-batches', 1, $percent, [], $Bench::Governor::Load::program, 'closed', '--batches', 100,
        '--seconds', 3600, $bench->batches(2));
    return;
}

1;
