# SPDX-License-Identifier: MIT
# The one processor that stands for the GPU: software Vulkan computes on it, and all other work of the tenants and
# their arbiter happens there, too. Processor time is taken from the cgroup of each tenant.
#
# Other work on the machine must not matter: the cgroup of all tenants has the highest weight.
package Bench::Governor::Machine;

use strict;
use warnings;

use POSIX ();

my ($accounts, $weights, $cpu);

sub mounts {
    open my $in, '<', '/proc/mounts' or die "/proc/mounts: $!\n";
    return map { [(split)[1, 2, 3]] } <$in>;
}

sub put {
    my ($file, $text) = @_;
    open my $out, '>', $file or return;
    print {$out} $text;
    return close $out;
}

# Below cgroup v2 if it has the controller, otherwise below the `cpu` of v1.
sub make_weights {
    my ($v2) = @_;
    if ($v2 && put("$v2/cgroup.subtree_control", '+cpu') && put("$accounts/cpu.weight", 10_000)) { return }
    my ($v1) = grep { $_->[1] eq 'cgroup' && $_->[2] =~ /\bcpu\b/ } mounts();
    return if !$v1;
    $weights = "$v1->[0]/vgpu-bench.$$";
    mkdir $weights;
    put("$weights/cpu.shares", 262_144);
    # The arbiter is a realtime process.
    put("$weights/cpu.rt_runtime_us", 500_000);
    return;
}

sub open_machine {
    my ($v2) = map { $_->[0] } grep { $_->[1] eq 'cgroup2' } mounts();
    $cpu = `nproc --all` - 1;
    $accounts = $v2 && "$v2/vgpu-bench.$$";
    if (!$accounts || !mkdir $accounts) {
        $accounts = undef;
        print STDERR "bench-governor: no cgroup v2 to write to: the processes' own times are taken\n";
    }
    make_weights($v2);
    return;
}

# A command, pinned to the processor.
sub pinned { return ('taskset', '-c', $cpu, @_) }

# In a child that is about to become $name.
sub enter {
    my ($name) = @_;
    put("$weights/cgroup.procs", $$) if $weights;
    return if !$accounts;
    mkdir "$accounts/$name";
    put("$accounts/$name/cgroup.procs", $$) or POSIX::_exit(126);
    return;
}

# Seconds of processor time of all processes of $name so far; undef without a cgroup.
sub used {
    my ($name) = @_;
    return if !$accounts;
    open my $in, '<', "$accounts/$name/cpu.stat" or return;
    my ($usec) = map { /^usage_usec (\d+)/ } <$in>;
    return $usec / 1e6;
}

# The group of $name, whose processes have ended.
sub leave {
    my ($name) = @_;
    rmdir "$accounts/$name" if $accounts;
    return;
}

sub close_machine {
    rmdir $_ for grep { defined } ($accounts && glob "$accounts/*/"), $accounts, $weights;
    return;
}

1;
