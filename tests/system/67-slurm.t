#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# Slurm's jobs on slices: a cluster of one node, set up from the files of docs/slurm.md, with systemd, munge and cgroups.
# Jobs compute by each door, a container and a VM among them; they have their slice's size and no more; what runs goes on
# while the daemons are killed.
# Rig: --packages tests/system/slurm/packages.txt
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use JSON::PP;
use VGPU::Compute;
use VGPU::Host;
use VGPU::Podman;
use VGPU::Slice;
use VGPU::Slurm;
use VGPU::Test;

my ($red, $blue) = baseline();
my $free = VGPU::Host::ledger();
my $gpu = VGPU::Lab::gpu();
my $mib = 2**20;
my $user = $VGPU::Slurm::user;
my $programs = $VGPU::Slice::programs;
my $compute = "$programs/vk-compute --device-name Venus";
my $storage = '/var/lib/containers';
# Of the VM that is a job.
my ($vm, $address) = ('job', '10.77.0.9');

sub host { return VGPU::Lab::host(@_) }
sub soon { return VGPU::Slice::soon(@_) }
sub ctl { return VGPU::Slice::ctl(@_) }
sub as { return VGPU::Slurm::as(@_) }
sub srun { return VGPU::Slurm::srun(@_) }
sub nothing_runs { return VGPU::Slurm::nothing_runs() }

# A point about jobs: if it fails, what Slurm and its logs say.
sub job_point {
    my ($what, $code) = @_;
    point($what, $code) or diag(VGPU::Slurm::explain());
    return;
}

# Five buffers of so many elements of four bytes.
sub has_memory_for {
    my ($words, $elements) = @_;
    my $said = srun("$words env VN_PERF=no_async_mem_alloc $compute --size $elements --iterations 1 --rounds 1", fail => 1);
    return 1 if !$VGPU::Command::status;
    die "it failed, and not for want of memory:\n$said" if $said !~ /memory/i;
    return 0;
}

# A job computes on its slice, sees its size, and gets 40 MiB of 64 but not 80.
sub computes_by {
    my ($words) = @_;
    my $verdict = VGPU::Compute::verdict(srun("$words $compute"));
    my $heap = VGPU::Slice::heap(srun("$words $VGPU::Slice::vulkaninfo"));
    die "its heap has $heap bytes\n" if $heap != 64 * $mib;
    die "it did not get 40 MiB of 64\n" if !has_memory_for($words, 2 * $mib);
    die "it got 80 MiB of 64\n" if has_memory_for($words, 4 * $mib);
    nothing_runs();
    return "$verdict\n";
}

point('a cluster of one node by the guide', sub {
    VGPU::Slice::mount_image($storage);
    return VGPU::Slurm::up($gpu, 'guarded,native,vm');
});

job_point('door guarded: a job computes, and has its slice\'s size', sub { return computes_by('--vgpu=64M,share=10,door=guarded') });

job_point('door native: a job computes, and has its slice\'s size', sub { return computes_by('--vgpu=64M,share=10,door=native') });

job_point('a container in a job, by $VGPU_DEVICE', sub {
    my $container = "podman run --rm --network none --log-driver none --device \\\$VGPU_DEVICE -v $programs:/opt:ro "
        . "--rootfs $VGPU::Slice::image:O $VGPU::Slice::compute";
    my $said = srun(qq(--vgpu=64M,door=native sh -c "$container"), as => 'root');
    my $verdict = VGPU::Compute::verdict($said);
    nothing_runs();
    return "$verdict\n";
});

job_point('a VM as a job, by $VGPU_MDEV', sub {
    host('cat >/tmp/vm.sh', stdin => <<"SH");
#!/bin/sh
/usr/local/lib/rig/guest up $vm 9 1G 1 /usr/local/lib/rig/init -device "vfio-pci,sysfsdev=\$VGPU_MDEV,bus=rp0" || exit 1
exec sleep 3600
SH
    my $id = host('cd /tmp && sbatch --parsable --vgpu=eighth,door=vm -o /tmp/vm.log vm.sh') =~ s/\s//gr;
    soon(sub { host('cat /tmp/vm.log; squeue -h -o %t', fail => 1) =~ /^R$/m }, 'the job does not run');
    soon(sub { host("kill -0 \$(cat /run/rig/guests/$vm/pid)", fail => 1); !$VGPU::Command::status }, 'it starts no VM');
    VGPU::Lab::adopt_guest($vm, $address);
    my $said = host("/usr/local/lib/rig/guest wait $vm 240; tail -n 3 /run/rig/guests/$vm/console.log; cat /tmp/vm.log", timeout => 300, fail => 1);
    die $said if $VGPU::Command::status;
    # It says that it is up before its sshd listens.
    soon(sub { eval { VGPU::Command::run([VGPU::Lab::rig('guest', $vm, 'run', '--', 'true')]); 1 } }, 'it runs no command');
    VGPU::Command::run([VGPU::Lab::rig('guest', $vm, 'put', VGPU::Lab::top() . '/build/guest/vk-compute', '/usr/local/bin/')], timeout => 120);
    my $verdict = VGPU::Compute::verdict(VGPU::Command::run([VGPU::Lab::rig('guest', $vm, 'run', '--', 'vk-compute', '--device-name', 'Venus')],
        timeout => 240));
    VGPU::Lab::hang_up($vm);
    host("scancel $id");
    nothing_runs();
    host("! kill -0 \$(cat /run/rig/guests/$vm/pid) 2>/dev/null && /usr/local/lib/rig/guest down $vm");
    return "$verdict\n";
});

job_point('vgpud and slurmd are killed while a job computes: it goes on, and is released at its end', sub {
    my $id = host('cd /tmp && ' . as($user, "sbatch --parsable --vgpu=64M,door=native -o /tmp/job.log --wrap '$compute --forever'")) =~ s/\s//gr;
    my $slice;
    soon(sub { ($slice) = grep { ($_->{Owner} // '') =~ /^slurm:/ } @{ decode_json(ctl('-o json slice list')) } }, 'it has no slice');
    soon(sub { VGPU::Slice::in_arbiter($gpu, $slice->{Uuid})->{members} }, 'it does not compute');
    host('systemctl kill -s KILL slurmd');
    VGPU::Host::kill_vgpud();
    soon(sub { host('vgpuctl slice list', fail => 1) =~ /$slice->{Uuid}/ }, 'vgpud is not back with its slice');
    host('systemctl restart slurmd', timeout => 120);
    soon(sub { host("squeue -h -o %t -j $id") =~ /^R$/m }, 'the job does not run any more');
    die "it does not compute any more\n" if !VGPU::Slice::in_arbiter($gpu, $slice->{Uuid})->{members};
    host("scancel $id");
    nothing_runs();
    soon(sub { host('sinfo -h -o %t') =~ /^idle$/m }, 'the node is not idle');
    return host("journalctl -q --no-pager -t vgpu-slurm | tail -n 5");
});

point('nothing is left', sub {
    VGPU::Slurm::down();
    VGPU::Slice::unmount_image($storage);
    VGPU::Host::must_be_sane($free, $red->{vgpu}, $blue->{vgpu});
    return computes($red) . computes($blue);
});

done_testing();
