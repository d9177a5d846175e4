#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# One guard with Vulkan on lavapipe and CUDA on the fake card: programs of both compute beside each other, and what ends
# of the one leaves the other alone. Part of `make cuda`.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use GuardLive;
use Test::More;

chomp(my $here = `pwd`);
my $cuda_socket = "$dir/cuda.sock";

# As the guard's unit has it, the worker's driver is where it is installed.
open my $script, '>', "$dir/worker" or die "$dir/worker: $!\n";
print {$script} "#!/bin/sh\nexec $here/build/cuda-remote/vgpu-cuda-worker \"\$@\" --library $here/build/cuda-test/real/libcuda.so.1\n";
close $script or die "$dir/worker: $!\n";
chmod 0755, "$dir/worker" or die "$dir/worker: $!\n";

sub cuda {
    my ($name, $case) = @_;
    return start($name, { VGPU_CUDA_SOCKET => $cuda_socket, LD_LIBRARY_PATH => "$here/build/cuda-remote" }, 'build/cuda-test/remote-client', $case);
}

# One that has memory, and says so.
sub holding {
    my ($name, $case) = @_;
    my $program = cuda($name, $case);
    within(60, sub { output($program) =~ /^holding/ || ended($program) });
    return $program;
}

sub workers { my %below = below($_[0]{pid}); return grep { $below{$_} =~ /^cuda:/ } keys %below }

my $guard = start_guard("--cuda-socket=$cuda_socket", "--cuda-worker=$dir/worker", '--setenv=FAKE_CUDA_CONTENT=1');
sleep 1;
my $descriptors = descriptors($guard->{pid});
my $vulkan = computing('vulkan');
my $cuda = cuda('cuda', 'compute');
is(finish($cuda, 60), 0, 'a program of CUDA computes beside one of Vulkan') or diag(output($cuda), output($guard));
ok(goes_on($vulkan), 'the program of Vulkan goes on beside CUDA');

my $witness = holding('witness', 'goes-on');
my $lost = holding('lost', 'lost');
my ($last) = sort { $b <=> $a } workers($guard);
kill 'KILL', $last;
is(finish($lost, 60), 0, 'a program whose worker is killed gets error 719') or diag(output($lost));
ok(goes_on($vulkan), 'the program of Vulkan goes on when a CUDA worker is killed');
stop($vulkan);
ok(within(15, sub { workers($guard) == 1 && keys %{ { below($guard->{pid}) } } == 1 }), 'of a program of Vulkan that is killed nothing is left');
kill 'TERM', $witness->{pid};
is(finish($witness, 30), 0, 'CUDA has gone on, and was right') or diag(output($witness));
ok(nothing_left($guard, $descriptors), 'no process or descriptor is left of both');

# Its compiled code is in the same place as shaders, which goes 30 s after the last client has left.
open my $compiled, '>', "$dir/shaders/compiled" or die "$dir/shaders: $!\n";
close $compiled or die "$dir/shaders: $!\n";
my $next = holding('next', 'goes-on');
ok(!within(35, sub { !-e "$dir/shaders/compiled" }), 'what a program of CUDA has compiled stays as long as it is there');
kill 'TERM', $next->{pid};
is(finish($next, 30), 0, 'it ends') or diag(output($next));
ok(nothing_left($guard, $descriptors), 'nothing is left of it, either');
kill 'TERM', $guard->{pid};
is(finish($guard, 10), 0, 'the guard ends when it is told to');

done_testing();
