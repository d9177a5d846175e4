#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# What the system tests count as a failure of a program, and as a complaint of a kernel: needs no rig.
use strict;
use warnings;
use File::Temp;
use FindBin;
use lib $FindBin::Bin;
use Test::More;
use VGPU::Compute;
use VGPU::KernelLog;

VGPU::Command::log_to('/dev/null');

# A program with this output and status, as through ssh.
sub ended {
    my ($status, $words) = @_;
    my $job = VGPU::Command::start(['sh', '-c', "echo '$words'; exit $status"], remote => 1);
    $job->wait(30, fail => 1);
    return $job;
}

sub fails {
    my ($code, $pattern, $name) = @_;
    ok(!defined eval { $code->(); 1 }, $name);
    like($@, $pattern, "$name: why");
    return;
}

sub judged { my ($status, $words, %opt) = @_; return VGPU::Compute::must_have_failed(ended($status, $words), %opt) }

like(judged(1, 'vk-compute: FAIL: VK_ERROR_DEVICE_LOST'), qr/^failed: .*LOST/, 'an error is a failure');
like(judged(134, 'MESA-VIRTIO: aborting'), qr/^aborted/, 'so is an abort by Mesa');
fails(sub { judged(0, 'OK') }, qr/right/, 'a program that was right has not failed');
fails(sub { judged(4, 'FAIL: hung') }, qr/hung/, 'a hang is no failure');
like(judged(4, 'FAIL: hung', hung => 1), qr/^hung/, 'but where the test says so');
fails(sub { judged(255, 'Connection to 10.77.0.101 closed') }, qr/connection broke/, "ssh's failure is none of the program's");
fails(sub { judged(127, 'sh: on-gpu: not found') }, qr/neither/, 'nor is a program that is missing');
fails(sub { judged(2, 'on-gpu: the guest has no GPU') }, qr/neither/, 'nor is a guest without the GPU');
fails(sub { judged(139, 'Segmentation fault') }, qr/neither/, 'a crash is not an abort');
my $wrong = 'vk-compute: FAIL: round 1: madd: element 0 is 0x%s, the CPU says 0x12345678';
fails(sub { judged(3, sprintf $wrong, '00000001') }, qr/wrong/, 'wrong data is no failure');
like(judged(3, sprintf($wrong, '00000001'), blank => 1), qr/results were gone/, 'a blank page is one where the test says so');
fails(sub { judged(3, (sprintf $wrong, '5a5a5a5a'), blank => 1) }, qr/wrong/, 'other data is not');

my @complaints = (
    'WARNING: CPU: 1 PID: 1 at foo.c:1 bar+0x1/0x2',
    'BUG: kernel NULL pointer dereference, address: 0000000000000000',
    'Oops: 0002 [#1] PREEMPT SMP NOPTI',
    'Oops: general protection fault, probably for non-canonical address',
    'UBSAN: array-index-out-of-bounds in foo.c:1:2',
    'BUG: KASAN: slab-use-after-free in bar',
    'INFO: task kworker:1 blocked for more than 120 seconds.',
    'rcu: INFO: rcu_preempt self-detected stall on CPU',
    'clocksource: Possible timer handling issue on cpu=1',
    'refcount_t: underflow; use-after-free.',
    'WARNING: possible circular locking dependency detected',
    'WARNING: suspicious RCU usage',
    'watchdog: BUG: soft lockup - CPU#0 stuck for 22s!',
    'kmemleak: 3 new suspected memory leaks',
    '[drm:virtio_gpu_dequeue_ctrl_func] *ERROR* response 0x1200 (command 0x203)',
);
is_deeply([VGPU::KernelLog::complaints('L1', (join '', map { "7 $_\n" } @complaints), 'x.t')], [map { "7 $_" } @complaints],
    'each complaint is one');
my $quiet = "1 rcu: Hierarchical RCU implementation.\n2 Spectre V2 : WARN about nothing\n3 leaks of light\n";
is_deeply([VGPU::KernelLog::complaints('L1', $quiet, 'x.t')], [], 'what sounds like one is none');

my $drm = '9 WARNING: CPU: 0 PID: 9 at drivers/gpu/drm/drm_mm.c:1 drm_mm_takedown+0x2c/0x40 [drm]';
is_deeply([VGPU::KernelLog::complaints('L1', $drm, 'tests/system/16-modes.t')], [], 'what a file expects is none of it');
is_deeply([VGPU::KernelLog::complaints('L1', $drm, 'tests/system/10-attach.t')], [$drm], 'and is one of another file');
is_deeply([VGPU::KernelLog::complaints('red', $drm, 'tests/system/16-modes.t')], [$drm], 'and of a guest');

# What a kernel has logged since the last reading, or what of it there still is.
sub logged {
    my ($last, @numbers) = @_;
    my $log = join '', map { "6,$_,1000,-;message $_\n SUBSYSTEM=x\n" } @numbers;
    my $file = File::Temp->new;
    print {$file} $log;
    close $file;
    my $command = VGPU::KernelLog::unread($file->filename) =~ s{\$\(cat \S+ 2>/dev/null \|\| echo -1\)}{$last}r;
    return [map { /^\d+ WARNING: .* lost messages (.*)/ ? $1 : /^(\d+)/ } split /\n/, `$command`];
}
is_deeply(logged(-1, 0 .. 2), [0 .. 2], 'all that a kernel has logged');
is_deeply(logged(1, 0 .. 3), [2, 3], 'all since the last reading');
is_deeply(logged(1, 4, 5), ['2 to 3', 4, 5], 'a gap after the last reading is a complaint');
is_deeply(logged(-1, 3, 5), ['0 to 2', 3, '4 to 4', 5], 'so is one after the boot, and one in between');
is_deeply(logged(5, 4, 5), [], 'nothing new');
is(scalar VGPU::KernelLog::complaints('L1', '4 WARNING: the kernel log has lost messages 2 to 3', 'x.t'), 1, 'it is red');

done_testing();
