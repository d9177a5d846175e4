#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# Slurm's jobs with CUDA, on a card at a fake driver of NVIDIA's (lib/VGPU/FakeNvidia.pm): by the door that a job gets
# without a word, which is native there, and by the guarded one. A job's program knows nothing of slices, and is held to
# the job's.
# Rig: --gpus 2 --packages tests/system/slurm/packages.txt
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use JSON::PP;
use VGPU::FakeNvidia;
use VGPU::Podman;
use VGPU::Sandbox;
use VGPU::Slice;
use VGPU::Slurm;
use VGPU::Test;

my @storage = qw(/var/lib/containers);
my $gpu = VGPU::FakeNvidia::gpu();
my $programs = $VGPU::Slice::programs;
my $client = "$programs/client-container";
my $remote = "$programs/remote-client";
my $user = $VGPU::Slurm::user;

sub host { return VGPU::Lab::host(@_) }
sub soon { return VGPU::Slice::soon(@_) }

# With what the fake driver needs in the job's own processes.
sub srun { my ($words, %opt) = @_; return VGPU::Slurm::srun($words, env => VGPU::FakeNvidia::env(), %opt) }

sub job_point {
    my ($what, $code) = @_;
    point($what, $code) or diag(VGPU::Slurm::explain());
    return;
}

# The slice of the only job, when it has one.
sub slice {
    my $slice;
    soon(sub { ($slice) = grep { ($_->{Owner} // '') =~ /^slurm:/ } @{ decode_json(VGPU::Slice::ctl('-o json slice list')) } }, 'the job has no slice');
    return $slice;
}

sub used { my ($slice) = @_; return (VGPU::Slice::in_arbiter($gpu, $slice->{Uuid}) // {})->{vram_used} // 0 }

# A batch job that takes 64 MiB and keeps it, and its slice.
sub holding {
    my ($words) = @_;
    my $id = host('cd /tmp && ' . VGPU::Slurm::as($user, 'env CLIENT_STAYS=1 ' . VGPU::FakeNvidia::env() . " sbatch --parsable $words -o /tmp/hold.log --wrap 'exec $client'")) =~ s/\s//gr;
    my $slice = slice();
    soon(sub { used($slice) == 64 * 2**20 }, 'it has not taken its memory');
    return ($id, $slice);
}

# What processes of a job have open of NVIDIA's nodes.
sub nodes_of {
    my ($id) = @_;
    my $said = host("for pid in \$(scontrol listpids $id | awk 'NR > 1 && \$1 > 0 { print \$1 }'); do readlink /proc/\$pid/fd/* 2>/dev/null; done", fail => 1);
    return join ' ', sort grep { m{^/dev/nvidia} } split /\n/, $said;
}

point('a cluster of one node by the guide, whose card is one of NVIDIA\'s', sub {
    VGPU::Slice::mount_image(@storage);
    VGPU::FakeNvidia::install('client-container', 'remote-client');
    my $said = VGPU::FakeNvidia::share();
    VGPU::FakeNvidia::set_guard('', 'FAKE_CUDA_CONTENT=1');
    return $said . VGPU::Slurm::up($gpu, 'guarded,native');
});

job_point('a job that names no door has CUDA by the native one, and no more than its slice', sub {
    my $said = srun("--vgpu=64M,share=30 sh -c 'echo door \$LD_LIBRARY_PATH; $client'");
    die $said if $said !~ m{^door /usr/lib/mdev-vgpu/cuda$}m || $said !~ /^64 MiB, 8 pieces$/m;
    VGPU::Slurm::nothing_runs();
    return $said;
});

job_point('the same in a batch job that is cancelled: its memory is given back', sub {
    my ($id, $slice) = holding('--vgpu=64M');
    die "its door is $slice->{Door}\n" if $slice->{Door} ne 'native';
    host("scancel $id");
    VGPU::Slurm::nothing_runs();
    VGPU::Slice::must_have_gone($gpu, $slice->{Uuid});
    return '';
});

job_point('door=guarded: a job computes without a node, and what it computes is right', sub {
    my $said = srun("--vgpu=64M,share=30,door=guarded sh -c 'echo door \$LD_LIBRARY_PATH; $remote compute && $remote graphs && echo right'");
    die $said if $said !~ m{^door /usr/lib/mdev-vgpu/guest$}m || $said !~ /^right$/m;
    VGPU::Slurm::nothing_runs();
    return $said;
});

job_point('door=guarded: it is told of the slice\'s memory and gets no more, by a worker of the guard', sub {
    my ($id, $slice) = holding('--vgpu=64M,door=guarded');
    my $said = host('cat /tmp/hold.log');
    die $said if $said !~ /^64 MiB, 8 pieces$/m;
    my $nodes = nodes_of($id);
    die "the job has $nodes\n" if $nodes;
    my $all = VGPU::Sandbox::processes("vgpu-guard\@$slice->{Uuid}.service");
    my @workers = grep { $_->{command} =~ /vgpu-cuda-worker/ } values %$all;
    die scalar(@workers) . " workers\n" if @workers != 1;
    host("scancel $id");
    VGPU::Slurm::nothing_runs();
    VGPU::Slice::must_have_gone($gpu, $slice->{Uuid});
    return $said . join "\n", map { $_->{command} } @workers;
});

job_point('two tasks have one slice of the card, of twice the size', sub {
    my $said = srun("-n2 --vgpu=64M,door=guarded $client");
    die $said if (() = $said =~ /^128 MiB, \d+ pieces$/mg) != 2;
    VGPU::Slurm::nothing_runs();
    return $said;
});

job_point('a container in a job, by $VGPU_DEVICE, computes without a node', sub {
    my $container = "podman run --rm --network none --log-driver none --device \\\$VGPU_DEVICE -v $programs:/opt:ro "
        . "--rootfs $VGPU::Slice::image:O sh -c 'find /dev -name \\\"nvidia*\\\"; /opt/remote-client compute && echo right'";
    my $said = srun(qq(--vgpu=64M,door=guarded sh -c "$container"), as => 'root');
    die $said if $said ne "right\n";
    VGPU::Slurm::nothing_runs();
    return $said;
});

job_point('the guard of a job is killed: its program gets an error, and the next one computes', sub {
    my $id = host('cd /tmp && ' . VGPU::Slurm::as($user, "sbatch --parsable --vgpu=64M,door=guarded -o /tmp/lost.log --wrap '$remote lost && $remote compute && echo right'")) =~ s/\s//gr;
    my $slice = slice();
    soon(sub { host('cat /tmp/lost.log', fail => 1) =~ /^holding/m }, 'it does not run');
    host("kill -9 \$(systemctl show -P MainPID vgpu-guard\@$slice->{Uuid}.service)");
    soon(sub { host('squeue -h') !~ /\S/ }, 'it does not end');
    my $said = host('cat /tmp/lost.log');
    die $said if $said !~ /^right$/m;
    VGPU::Slurm::nothing_runs();
    return $said;
});

point('nothing is left', sub {
    VGPU::Slurm::down();
    VGPU::FakeNvidia::remove();
    VGPU::Slice::unmount_image(@storage);
    return '';
});

done_testing();
