#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# Which folder may include which, outside of host-agent (test-layers.c has its own rooms): no arrow goes up, and no new
# circle of files that include each other.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use VGPU::House;

chdir "$FindBin::Bin/../.." or die "$!\n";

# A folder, and those that it may use beside itself. One that is not listed belongs to the nearest listed one above it.
my %uses = (
    'lib' => [],
    'host-agent/model' => ['lib'], # test-layers.c has the rest
    'governor/protocol' => [],
    'governor/core' => ['governor/protocol'],
    'governor/arbiter' => ['governor/core', 'governor/protocol', 'lib/descriptor'],
    'governor/vault' => ['governor/protocol', 'lib/descriptor'],
    'governor/member' => ['governor/core', 'governor/protocol', 'lib/descriptor'],
    'governor/lane' => ['governor/member', 'governor/core'],
    'governor/vulkan' => ['governor/lane', 'governor/member', 'governor/core', 'governor/protocol'],
    'governor/cuda' => ['governor/cuda/abi', 'governor/lane', 'governor/member', 'governor/core'],
    'governor/cuda/abi' => [],
    'governor/cuda/limits' => ['governor/cuda/abi'],
    'governor/cuda/readings' => ['governor/cuda/abi'],
    'governor/cuda/suspend' => ['governor/cuda/abi'],
    'mdev-driver/uapi' => [],
    'mdev-driver/model' => ['mdev-driver/uapi'],
    'mdev-driver' => ['mdev-driver/model', 'mdev-driver/uapi'],
    'mdev-driver/registrar' => ['lib'],
    'cuda-remote/wire' => ['governor/cuda/entry_table'],
    'cuda-remote/guest' => ['cuda-remote/wire', 'governor/cuda/abi', 'lib/descriptor'],
    'cuda-remote/nvml' => ['cuda-remote/wire', 'cuda-remote/guest/transport', 'cuda-remote/guest/lost_memory', 'governor/cuda/abi'],
    'cuda-remote/worker' => ['cuda-remote/wire', 'governor/cuda/abi', 'lib/descriptor'],
    'cuda-remote/guest-package' => ['cuda-remote/wire/control'],
    'engine' => ['cuda-remote/wire/channel', 'cuda-remote/wire/control', 'cuda-remote/wire/nvml', 'lib/descriptor'],
    'engine/guard' => ['engine', 'cuda-remote/wire/control', 'lib/descriptor', 'governor/member'],
    'container-hooks' => ['lib'],
    'qemu-hooks' => ['lib'],
    'mdevctl-plugins' => ['lib', 'host-agent/model'],
    'fleet/request' => [],
    'fleet' => ['lib'],
    'fleet/slurm' => ['fleet', 'fleet/request', 'lib'],
    'fleet/kubernetes/http' => [],
    'fleet/kubernetes/grpc' => ['fleet/kubernetes/http'],
    'fleet/kubernetes' => ['fleet', 'fleet/kubernetes/grpc', 'fleet/kubernetes/http', 'lib'],
    'card' => [],
);

# Files that still include each other. One that is gone stays harmless here; a new one is red.
my @known_circles = (
    [map { "engine/$_" } qw(answer backing capset context context_kind control cuda_context display engine hold host_memory image
        parking resource resource_commands scanout stuck window)],
    [map { "mdev-driver/model/$_" } qw(pci_config virtio_regs)],
);

# The listed folder, or file without its end, that a path belongs to.
sub place_of {
    my ($path) = @_;
    my $place = VGPU::House::module_of($path);
    $place =~ s{/[^/]+$}{} or return $path while !$uses{$place};
    return $place;
}

sub may_include {
    my ($path, $included) = @_;
    my $from = place_of($path);
    return 1 if $from eq place_of($included);
    my $module = VGPU::House::module_of($included);
    return scalar grep { $_ eq place_of($included) || $_ eq $module } @{ $uses{$from} };
}

sub is_known {
    my %of = map { $_ => 1 } @_;
    for my $known (@known_circles) {
        my %known = map { $_ => 1 } @$known;
        return 1 if !grep { !$known{$_} } keys %of;
    }
    return 0;
}

# The rules are able to refuse.
ok(!may_include('lib/pci.c', 'governor/member/member.h'), 'lib/ may not use the governor');
ok(!may_include('engine/resource.c', 'engine/guard/session.h'), 'an engine may not use the guard');
ok(!may_include('governor/core/lease.c', 'governor/arbiter/slice.h'), 'the core may not use the arbiter');
ok(!may_include('fleet/slurm/node/job.c', 'fleet/kubernetes/conf.h'), 'Slurm may not use Kubernetes');
ok(!may_include('cuda-remote/wire/calls.c', 'governor/cuda/real.h'), 'the wire may use the table of CUDA alone');
ok(may_include('engine/guard/session.c', 'engine/worker.h'), 'the guard may use the engine');
ok(!is_known('lib/a', 'lib/b'), 'a new circle is not known');
is_deeply([VGPU::House::circles({ a => { b => 1 }, b => { c => 1 }, c => { a => 1 }, d => { a => 1 } })], [['a', 'b', 'c']], 'a circle is found');

my @paths = VGPU::House::sources(grep { $_ ne 'host-agent' } @VGPU::House::folders);
my $by_name = VGPU::House::by_name(VGPU::House::sources(@VGPU::House::folders));
my @upward;
for my $path (@paths) {
    push @upward, "$path may not include $_" for grep { !may_include($path, $_) } VGPU::House::includes($path, $by_name);
}
is_deeply(\@upward, [], 'each file includes what its folder may use');
my @circles = map { "@$_" } grep { !is_known(@$_) } VGPU::House::circles(VGPU::House::module_graph(@paths));
is_deeply(\@circles, [], 'no files include each other that did not before');
done_testing();
