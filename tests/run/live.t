#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# vgpuctl run: a program gets a slice of a GPU, can't have more than that, and gives it back when it ends, however it
# ends. The host is RunLive's.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use POSIX ':sys_wait_h';
use RunLive;
use Test::More;
use Time::HiRes 'sleep';

sub slices { return (output_of("$vgpuctl slice list"))[0] }
sub none_left { return within(15, sub { slices() =~ /no slice/ }) }

start_host('1G');

my ($text, $status) = output_of("$vgpuctl run --vram 256M -- $build/guest/vk-compute --rounds=2 --size 65536");
is($status, 0, 'a program computes in a slice of its own') or diag($text, slurp("$root/vgpud.log"), slurp("$root/arbiter.log"));
like($text, qr/verified on llvmpipe/, 'the program computes on the GPU');
ok(none_left(), 'the slice is given back');

($text, $status) = output_of("$vgpuctl run --vram 64M -- $fill 512");
like($text, qr/^heap 64 MiB$/m, 'it sees as much memory as its slice has');
like($text, qr/^has (?:56|64) MiB$/m, 'and can have no more') or diag($text);
($text) = output_of("$fill 512");
like($text, qr/^has 512 MiB$/m, 'which it can without a slice');

($text, $status) = output_of("$vgpuctl run --vram 2G -- true");
is($status, 7, 'more than the GPU has is refused');
like($text, qr/no room for the slice/, 'the refusal says that there is no room');
($text, $status) = output_of("$vgpuctl vgpu create half");
is($status, 3, 'a VM gets none');
like($text, qr/mdev_vgpu is not loaded.*install the package mdev-vgpu/, 'and is told what is missing');

is((output_of("$vgpuctl run --vram 64M -- sh -c 'exit 42'"))[1], 42, 'the exit status is the program\'s');
is((output_of("$vgpuctl run --vram 64M -- sh -c 'kill -TERM \$\$'"))[1], 128 + 15, 'so is the signal that ends it');
is((output_of("$vgpuctl run --vram 64M -- /no/such"))[1], 127, 'a program that is not there');
is((output_of("$vgpuctl run --vram 64M -- /etc"))[1], 127, 'a folder is no program');
like((output_of("$vgpuctl run --vram 64M -- sh -c 'trap'"))[0], qr/^$/, 'no signal is ignored that was not before');
is((output_of("$vgpuctl run -- true"))[1], 2, 'a size must be given');
ok(none_left(), 'nothing is left of them');

# The whole GPU, so that there is no room for another.
my $holder = start('holder', $vgpuctl, 'run', '--vram', '1G', '--', 'sh', '-c', 'exec sleep 1000');
ok(within(10, sub { slices() =~ /sleep|sh\[$holder\]/ }), 'who has it is listed') or diag(slices());
is((output_of("$vgpuctl run --vram 64M -- true"))[1], 7, 'what it has nobody else gets');
kill_vgpud('TERM');
start_vgpud();
ok(within(20, sub { slices() =~ /sh\[$holder\]/ }), 'over a restart of vgpud too');
kill 'KILL', $holder;
waitpid $holder, 0;
forget($holder);
is((output_of("$vgpuctl run --vram 64M -- true"))[1], 0, 'when it is killed, it is free at once');
ok(none_left(), 'the slice of a killed program is given back');

# A child that goes on with the GPU when the program has ended.
system('mkfifo', "$root/fifo") == 0 or die "mkfifo\n";
open my $fifo, '+<', "$root/fifo" or die "fifo: $!\n";
my $parent = start('child', $vgpuctl, 'run', '--vram', '64M', '--', 'sh', '-c',
    "$fill 16 --hold <$root/fifo & until grep -q has $root/child.log; do sleep 0.1; done");
my $ended;
within(20, sub { $ended = waitpid($parent, WNOHANG) == $parent });
ok($ended && $? == 0, 'a program ends before its child') or diag(slurp("$root/child.log"));
forget($parent) if $ended;
sleep 1;
like(slices(), qr/sh\[$parent\]/, 'which keeps the slice') or diag(slurp("$root/vgpud.log"));
close $fifo;
ok(none_left(), 'the slice is given back when the program ends') or diag(slices(), slurp("$root/vgpud.log"));

nothing_to_complain_of();
done_testing();
