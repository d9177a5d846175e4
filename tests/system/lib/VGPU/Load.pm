# SPDX-License-Identifier: MIT
# Tenants that do batches of fixed work (tests/bench/governor-load), in guests and beside them on the host: who does how
# much of all that is done.
package VGPU::Load;

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../bench/lib";
use Bench::Stats;
use JSON::PP;
use VGPU::Command;
use VGPU::Lab;

my $program = 'build/bench/governor-load/governor-load';

sub install {
    my @tenants = @_;
    my $file = VGPU::Lab::top() . "/$program";
    $_->put($file, '/usr/local/bin/') for @tenants;
    VGPU::Command::run([VGPU::Lab::rig('put', $file, '/usr/local/bin/')]);
    return;
}

# How many iterations a batch has to have to take about so long.
sub iterations {
    my ($ms) = @_;
    my ($line) = VGPU::Lab::host("governor-load calibrate --device-name Venus --ms $ms", timeout => 120) =~ /^(\{.*\})$/m
        or die "governor-load says nothing\n";
    return decode_json($line)->{iterations};
}

sub command {
    my ($name, $iterations, $seconds) = @_;
    return "governor-load closed --device-name Venus --iterations $iterations --depth 2 --seconds $seconds --name $name";
}

sub in_guest {
    my ($tenant, $iterations, $seconds) = @_;
    my $gpu = $tenant->gpu_of($tenant->{vgpu});
    return $tenant->job("exec on-gpu $gpu " . command($tenant->{name}, $iterations, $seconds));
}

# A program of the host in a slice, as a container will be.
sub on_host {
    my ($slice, $iterations, $seconds) = @_;
    return VGPU::Lab::host_job("VGPU_GOVERNOR=1 VGPU_GOVERNOR_SOCKET=/run/vgpu/slices/$slice/governor.sock "
        . command($slice, $iterations, $seconds));
}

# Batches that each of the jobs did between two moments, in seconds since its own beginning.
sub done {
    my ($from, $to, %jobs) = @_;
    my %done;
    for my $name (sort keys %jobs) {
        my ($line) = $jobs{$name}->wait(4 * $to + 120) =~ /^(\{.*\})$/m or die "$name says nothing\n";
        $done{$name} = Bench::Stats::done_between([map { $_ / 1e6 } @{ decode_json($line)->{ends_us} }], $from, $to);
    }
    return \%done;
}

# Each one's part of all that was done.
sub parts {
    my ($done) = @_;
    my $all = 0;
    $all += $_ for values %$done;
    die "nothing was done\n" if !$all;
    return { map { $_ => $done->{$_} / $all } keys %$done };
}

1;
