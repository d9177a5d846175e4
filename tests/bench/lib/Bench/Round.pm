# SPDX-License-Identifier: MIT
# The measurements of one place in one round: times by the program itself, and counts and the host's processor
# time around runs of a known amount of work.
package Bench::Round;

use strict;
use warnings;

use JSON::PP ();
use Time::HiRes qw(time);
use Bench::Outer;
use Bench::Stats;

# Rows of vk-bench in one run; samples by row.
sub vk_bench {
    my ($place, $options, $rows, $timeout) = @_;
    my $text = $place->run("vk-bench --device-name Venus $options @$rows", $timeout // 90);
    my %samples;
    for my $line (grep { /^\{"row"/ } split /\n/, $text) {
        my $row = JSON::PP::decode_json($line);
        $samples{ $row->{row} } = $row->{samples};
    }
    for my $row (@$rows) { die "$place->{name}: no row $row in:\n$text" if !$samples{$row} }
    return \%samples;
}

# Runs rows between two looks at counters and processor time; returns samples and differences.
sub counted {
    my ($place, $options, $rows) = @_;
    my $before = $place->counters;
    my $cpu = Bench::Outer::cpu_seconds();
    my $samples = vk_bench($place, $options, $rows);
    $cpu = Bench::Outer::cpu_seconds() - $cpu;
    my $after = $place->counters;
    my %diff = (cpu => $cpu);
    $diff{$_} = $after->{$_} - $before->{$_} for grep { defined $before->{$_} } keys %$after;
    return ($samples, \%diff);
}

# The cost of opening and closing the device does not count as submissions'.
sub overhead {
    my ($place) = @_;
    my (undef, $diff) = counted($place, '', ['open']);
    return $diff;
}

# The difference minus the overhead, per piece of work.
sub put {
    my ($into, $row, $diff, $base, $name, $work) = @_;
    return if !defined $diff->{$name};
    my $value = ($diff->{$name} - ($base->{$name} // 0)) / $work;
    $into->{$row} = $value > 0 ? $value : 0;
    return;
}

# 1000 submissions of the tiny kernel, each waited for or not, with their cost for the host.
sub thousand_submits {
    my ($into, $place, $base, $row, $suffix, $options) = @_;
    my ($samples, $diff) = counted($place, $options, [$row]);
    put($into, "$_-$suffix", $diff, $base, $_, 1) for qw(doorbells interrupts exits);
    put($into, "cpu-$suffix", $diff, $base, 'cpu', 1);
    return $samples->{$row};
}

sub light_dispatches {
    my ($into, $place, $base, $light) = @_;
    my ($samples, $diff) = counted($place, "--light $light", ['dispatch-2ms']);
    my $times = $samples->{'dispatch-2ms'};
    $into->{'dispatch-2ms'} = Bench::Stats::median(@$times);
    put($into, 'cpu-2ms', $diff, $base, 'cpu', @$times / 1e3);
    return;
}

sub first_touches {
    my ($into, $place, $base) = @_;
    my ($samples, $diff) = counted($place, '', ['first-touch']);
    my $times = $samples->{'first-touch'};
    $into->{'first-touch'} = Bench::Stats::median(@$times);
    put($into, 'first-touch-exits', $diff, $base, 'exits', scalar @$times);
    put($into, 'first-touch-faults', $diff, $base, 'window_faults', scalar @$times);
    return;
}

# All rows of a place; $light as `vk-bench calibrate` found it natively. The first run warms up.
sub measure {
    my ($place, $light) = @_;
    my %seen;
    vk_bench($place, '', ['heavy']);
    my $times = vk_bench($place, '', [qw(heavy upload download context)], 120);
    $seen{$_} = Bench::Stats::median(@{ $times->{$_} }) for keys %$times;

    my $base = overhead($place);
    my $tiny = thousand_submits(\%seen, $place, $base, 'tiny', 'tiny', '--repeat 2');
    $seen{'tiny-median'} = Bench::Stats::median(@$tiny);
    $seen{'tiny-p99'} = Bench::Stats::quantile(0.99, @$tiny);
    my $burst = thousand_submits(\%seen, $place, $base, 'burst', 'load', '');
    $seen{burst} = Bench::Stats::median(@$burst);
    light_dispatches(\%seen, $place, $base, $light);
    first_touches(\%seen, $place, $base);
    return \%seen;
}

# Seconds that clpeak takes for its latency of kernels: OpenCL by rusticl and zink, so Vulkan below. Mesa's other
# OpenCL finds no device here, and clpeak would end with an error because of it. One that takes longer than the
# limit is stopped there, and counts as that long.
our $clpeak_limit = 300;
sub clpeak {
    my ($place) = @_;
    my $begin = time;
    my $text = eval {
        $place->run('timeout ' . $clpeak_limit
            . ' env OCL_ICD_VENDORS=/etc/OpenCL/vendors/rusticl.icd clpeak --kernel-latency', $clpeak_limit + 30);
    } // '';
    return $clpeak_limit if !$text && time - $begin >= $clpeak_limit;
    die "$place->{name}: clpeak has no result:\n$text$@" if $text !~ /Kernel launch latency : [\d.]+/;
    return time - $begin;
}

1;
