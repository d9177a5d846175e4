# SPDX-License-Identifier: MIT
# Tenants that run batches of fixed work (tests/bench/governor-load), in guests and beside them on the host: how much of
# the finished work is each one's.
package VGPU::Load;

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../bench/lib";
use Bench::Stats;
use JSON::PP;
use VGPU::Command;
use VGPU::Host;
use VGPU::Lab;
use VGPU::Slice;

our $program = 'build/bench/governor-load/governor-load';

sub install {
    my @tenants = @_;
    my $file = VGPU::Lab::top() . "/$program";
    $_->put($file, '/usr/local/bin/') for @tenants;
    VGPU::Command::run([VGPU::Lab::rig('put', $file, '/usr/local/bin/')]);
    return;
}

# The JSON line that governor-load prints.
sub report {
    my ($text) = @_;
    my ($line) = $text =~ /^(\{.*\})$/m or die "governor-load says nothing:\n$text";
    return decode_json($line);
}

# How many iterations a batch needs to take about this long.
sub iterations {
    my ($ms) = @_;
    return report(VGPU::Lab::host("governor-load calibrate --device-name Venus --ms $ms", timeout => 120))->{iterations};
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

# A program of the host: in a slice, like a container, or without the governor if $governed is false.
sub on_host {
    my ($slice, $iterations, $seconds, $governed) = @_;
    my $env = $governed ? "VGPU_GOVERNOR=1 VGPU_GOVERNOR_SOCKET=/run/vgpu/slices/$slice/governor.sock " : '';
    return VGPU::Lab::host_job($env . command($slice, $iterations, $seconds));
}

# While $code runs the GPU has no arbiter, nor its marks, so programs that begin then are not governed. They must have
# ended when it returns, or they would join the arbiter that is started after it. Returns what $code does.
sub ungoverned {
    my ($code) = @_;
    my $gpu = VGPU::Lab::gpu();
    my $seen = VGPU::Host::without_vgpud(sub {
        VGPU::Lab::host("systemctl stop vgpu-arbiter\@$gpu && rm -f /run/vgpu/slices/*/required", timeout => 60);
        return $code->();
    });
    VGPU::Slice::soon(sub { VGPU::Slice::ask_arbiter($gpu) }, "the arbiter of $gpu is not back");
    return $seen;
}

# When each job's batches ended, in seconds since its own beginning: once the jobs are over.
sub ends {
    my ($limit, %jobs) = @_;
    return { map { $_ => [map { $_ / 1e6 } @{ report($jobs{$_}->wait($limit))->{ends_us} }] } sort keys %jobs };
}

# How many batches of each ended between two times.
sub count {
    my ($ends, $from, $to) = @_;
    return { map { $_ => Bench::Stats::done_between($ends->{$_}, $from, $to) } keys %$ends };
}

sub done {
    my ($from, $to, %jobs) = @_;
    return count(ends(4 * $to + 120, %jobs), $from, $to);
}

# Each one's part of all finished work.
sub parts {
    my ($done) = @_;
    my $all = 0;
    $all += $_ for values %$done;
    die "nothing was done\n" if !$all;
    return { map { $_ => $done->{$_} / $all } keys %$done };
}

1;
