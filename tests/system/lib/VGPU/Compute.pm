# SPDX-License-Identifier: MIT
# Programs that use a vGPU in a guest. Each function takes the tenant and the vGPU's PCI address in the guest, and
# returns a running job (VGPU::Command), so that two guests compute at once.
package VGPU::Compute;

use strict;
use warnings;

use VGPU::Command;
use VGPU::Lab;

my $guest_programs = 'build/guest';

# Copies the programs into the guest, if they are not there yet.
sub install {
    my ($tenant) = @_;
    my $top = VGPU::Lab::top();
    return if $tenant->run('test ! -x /usr/local/bin/on-gpu || echo there') =~ /there/;
    $tenant->put("$top/$guest_programs/vk-compute", "$top/$guest_programs/cl-compute",
        "$top/tests/guest/on-gpu", '/usr/local/bin/');
    # A reset of the VM loses data that is not on its disk yet.
    $tenant->run('sync', timeout => 120);
    return;
}

sub on_gpu {
    my ($tenant, $gpu, $command) = @_;
    return $tenant->job("on-gpu $gpu $command");
}

sub vulkaninfo { my ($tenant, $gpu) = @_; return on_gpu($tenant, $gpu, 'vulkaninfo --summary') }

sub vulkan {
    my ($tenant, $gpu, $options) = @_;
    return on_gpu($tenant, $gpu, 'vk-compute --device-name Venus ' . ($options // ''));
}

# The first round includes the compiler: 58 s in a guest with nothing beside, 149 s beside other tests, and more than 220 s
# in CI.
our $opencl_limit = 600;

sub opencl {
    my ($tenant, $gpu, $options) = @_;
    return on_gpu($tenant, $gpu, "cl-compute --device-name Venus --timeout $opencl_limit " . ($options // ''));
}

# The device's name in the output of vulkaninfo.
sub device_name {
    my ($text) = @_;
    my ($name) = $text =~ /^\s*deviceName\s*=\s*(.*?)\s*$/m;
    return $name // die "vulkaninfo names no device:\n$text";
}

# The last OK line of a program; dies if there is none.
sub verdict {
    my ($text) = @_;
    my @ok = grep { /^OK [\w-]+-compute: \d+ rounds/ } split /\n/, $text;
    return $ok[-1] // die "no verified result:\n$text";
}

# How a program ended, by its exit status (tests/guest/job.h). Any other status, such as that of a missing program or of
# on-gpu without a GPU, says nothing about the GPU, and no test may take it for an answer.
my %ends = (
    0 => 'right',
    1 => 'failed',
    3 => 'wrong',
    4 => 'hung',
    128 + 6 => 'aborted',
    128 + 7 => 'unmapped',
    128 + 15 => 'stopped',
);

sub how_it_ended {
    my ($job) = @_;
    my $end = $ends{ $job->{status} // die "it has not ended: $job->{name}\n" };
    return $end // die "neither an answer of the GPU nor a failure: status $job->{status}\n" . VGPU::Command::tail($job->output);
}

# A program whose engine has ended must fail: a call returns an error, or Mesa aborts the program. A hang is red, unless
# the test says hung => 1 because a hang is documented. A vGPU that is unplugged takes its memory with it, so with
# unplugged => 1 SIGBUS is a failure like the others. Wrong data is red; with blank => 1 a blank page (1 in every 8
# bytes) is not: docs/architecture.md names that gap.
sub must_have_failed {
    my ($job, %opt) = @_;
    my $how = how_it_ended($job);
    my $last = (split /\n/, $job->output)[-1] // '';
    my %fits = (failed => 1, aborted => 1, hung => $opt{hung}, unmapped => $opt{unplugged});
    return "$how: $last" if $fits{$how};
    my ($read) = $job->output =~ /is (0x[0-9a-f]{8}), the CPU says/;
    return 'failed, for the results were gone' if $how eq 'wrong' && $opt{blank} && hex($read) <= 1;
    die "it should have failed; $how:\n" . VGPU::Command::tail($job->output);
}

# Stops programs that compute forever. They must still run, and must have been right until now.
sub stop_right {
    my ($tenant, @jobs) = @_;
    for my $job (@jobs) {
        die "it has ended:\n" . VGPU::Command::tail($job->output) if !$job->running;
    }
    $tenant->run('pkill -x vk-compute');
    for my $job (@jobs) {
        $job->wait(60, fail => 1);
        my $how = how_it_ended($job);
        die "$how:\n" . VGPU::Command::tail($job->output) if $how ne 'stopped';
    }
    return join ', ', map { rounds($_) . ' rounds verified' } @jobs;
}

# The number of rounds that a running program has verified so far.
sub rounds {
    my ($job) = @_;
    my @rounds = $job->output =~ /^OK round (\d+):/mg;
    return $rounds[-1] // 0;
}

1;
