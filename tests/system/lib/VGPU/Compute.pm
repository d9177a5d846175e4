# SPDX-License-Identifier: MIT
# Programs that use a vGPU in a guest. Each function takes the tenant and the vGPU's PCI address in
# the guest, and returns a job (VGPU::Command) that is under way: so two guests compute at once.
package VGPU::Compute;

use strict;
use warnings;

use VGPU::Command;
use VGPU::Lab;

my $guest_programs = 'build/guest';

# Puts the programs into the guest, where they are not there yet.
sub install {
    my ($tenant) = @_;
    my $top = VGPU::Lab::top();
    return if $tenant->run('test ! -x /usr/local/bin/on-gpu || echo there') =~ /there/;
    $tenant->put("$top/$guest_programs/vk-compute", "$top/$guest_programs/cl-compute",
        "$top/tests/guest/on-gpu", '/usr/local/bin/');
    # A reset of the VM loses what is not on its disk yet.
    $tenant->run('sync', timeout => 120);
    return;
}

sub on_gpu {
    my ($tenant, $gpu, $command) = @_;
    return $tenant->job("exec on-gpu $gpu $command");
}

sub vulkaninfo { my ($tenant, $gpu) = @_; return on_gpu($tenant, $gpu, 'vulkaninfo --summary') }

sub vulkan {
    my ($tenant, $gpu, $options) = @_;
    return on_gpu($tenant, $gpu, 'vk-compute --device-name Venus ' . ($options // ''));
}

sub opencl {
    my ($tenant, $gpu, $options) = @_;
    return on_gpu($tenant, $gpu, 'cl-compute --device-name Venus ' . ($options // ''));
}

# The device's name in the output of vulkaninfo.
sub device_name {
    my ($text) = @_;
    my ($name) = $text =~ /^\s*deviceName\s*=\s*(.*?)\s*$/m;
    return $name // die "vulkaninfo names no device:\n$text";
}

# The last OK line of a program; dies where there is none.
sub verdict {
    my ($text) = @_;
    my @ok = grep { /^OK [\w-]+-compute: \d+ rounds/ } split /\n/, $text;
    return $ok[-1] // die "no verified result:\n$text";
}

# A program whose engine is gone must fail. It dies too where the program took wrong data for right; with
# blank => 1 not if what it read was a blank page (1 in every 8 bytes): docs/architecture.md names that gap.
sub must_have_failed {
    my ($job, %opt) = @_;
    my $text = $job->output;
    my $end = VGPU::Command::tail($text);
    die "it ended with status 0:\n$end" if !$job->{status};
    my ($read) = $text =~ /is (0x[0-9a-f]{8}), the CPU says/;
    return "failed with status $job->{status}" if !defined $read;
    die "it took wrong data for right:\n$end" if !$opt{blank} || hex($read) > 1;
    return "failed with status $job->{status}, for the results were gone";
}

# The number of rounds that a running program has verified so far.
sub rounds {
    my ($job) = @_;
    my @rounds = $job->output =~ /^OK round (\d+):/mg;
    return $rounds[-1] // 0;
}

1;
