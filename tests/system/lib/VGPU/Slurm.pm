# SPDX-License-Identifier: MIT
# A cluster of Slurm's with one node, L1, set up from the files of docs/slurm.md, with systemd, munge and cgroups.
package VGPU::Slurm;

use strict;
use warnings;

use JSON::PP;
use VGPU::Command;
use VGPU::Lab;
use VGPU::Slice;

our $user = 'jobs';
my @daemons = qw(munge slurmctld slurmd);
# What gpus.conf was before.
my $conf;

sub host { return VGPU::Lab::host(@_) }
sub soon { return VGPU::Slice::soon(@_) }
sub owned { return grep { /^slurm:/ } split /\n/, VGPU::Slice::ctl('owner list --no-headers') }

# A command of Slurm's as a user without rights, or as root.
sub as { my ($who, $command) = @_; return $who eq 'root' ? $command : "setpriv --reuid $who --regid $who --init-groups env HOME=/tmp $command" }

# A job to its end. as: who asks for it. env: of its environment.
sub srun {
    my ($words, %opt) = @_;
    my $env = $opt{env} ? "env $opt{env} " : '';
    return host('cd /tmp && ' . as($opt{as} // $user, "${env}srun $words") . ' 2>&1', timeout => 300, %opt);
}

sub nothing_runs {
    soon(sub { host('squeue -h') !~ /\S/ }, 'a job runs still');
    soon(sub { !owned() }, 'a job\'s slice is there still');
    return;
}

# What Slurm and its logs say, for a point that has failed. Its jobs are cancelled.
sub explain {
    my $said = host('squeue; sinfo -R; journalctl -q --no-pager -o cat -t vgpu-slurm -u vgpud -n 25; tail -n 20 /tmp/*.log', fail => 1);
    host("for who in root $user; do scancel -u \$who; done", fail => 1);
    return $said;
}

# The blocks of code of the guide's cluster, in their order.
sub guide {
    open my $in, '<', VGPU::Lab::top() . '/docs/slurm.md' or die "docs/slurm.md: $!\n";
    my $text = do { local $/ = undef; <$in> };
    my ($section) = $text =~ /^## A cluster from nothing\n(.*?)(?=^## )/ms or die "the guide has no such section\n";
    return $section =~ /^```\n(.*?)^```/msg;
}

sub install {
    my $top = VGPU::Lab::top();
    VGPU::Command::run([VGPU::Lab::rig('build', '--with', 'tests/fleet/packages.txt', '--', 'make', '-s', 'install-fleet', 'DESTDIR=build/fleet/in-l1')],
        timeout => 900, name => '[build] make install-fleet');
    return VGPU::Command::run(['bash', '-c', 'tar -C "$0" --owner=0 --group=0 -czf - . | "$@"', "$top/build/fleet/in-l1",
        VGPU::Lab::rig('run', '--', 'tar', '-C', '/', '-xzf', '-', '--no-overwrite-dir')], timeout => 120);
}

# The cluster by the guide, whose only card is $gpu; jobs may use these doors. What "vgpu-slurm check" says.
sub up {
    my ($gpu, $doors) = @_;
    install();
    $conf = host('cat /etc/vgpu/gpus.conf');
    host("sed -i '/^\\[gpu $gpu/,\$ s/^mode=shared\$/&\\npool=slurm/' /etc/vgpu/gpus.conf && vgpuctl reload", timeout => 120);
    my ($card) = grep { $_->{Address} eq $gpu } @{ decode_json(VGPU::Slice::ctl('-o json gpu list')) };
    my $mib = $card->{Vram} >> 20;
    my $name = host('hostname -s') =~ s/\s//gr;
    my ($slurm, $plugstack, $cgroup, $vgpu) = guide();
    for ($slurm, $vgpu) {
        s/a100-80g/$card->{Model}/g;
        s/81920/$mib/g;
        s/a100\b/card/g;
        s/^doors=.*$/doors=$doors/m;
    }
    $slurm =~ s/^SlurmctldHost=\Khead$/$name/m;
    $slurm =~ s/node1/$name/g;
    $slurm =~ s/^NodeName=\S+ \K.* RealMemory=\d+/CPUs=2 RealMemory=2000/m or die "the guide has no node\n";
    $slurm =~ s/^DefMemPerCPU=\K\d+/500/m;
    my %files = ('/etc/slurm/slurm.conf' => $slurm, '/etc/slurm/plugstack.conf' => $plugstack, '/etc/slurm/cgroup.conf' => $cgroup,
        '/etc/vgpu/vgpu.conf' => $vgpu);
    host("cat >$_", stdin => $files{$_}) for sort keys %files;
    my $said = host(<<"SH", timeout => 180);
set -e
id $user >/dev/null 2>&1 || useradd $user
vgpu-slurm gres-conf --write
systemctl unmask @daemons
systemctl restart @daemons
vgpu-slurm check
cat /etc/slurm/gres.conf
SH
    soon(sub { host('sinfo -h -o %t') =~ /^idle$/m }, 'the node is not idle');
    return $said . host('sinfo -O NodeHost,Gres:60');
}

# Dies if a job has left anything.
sub down {
    host("systemctl stop slurmd slurmctld munge; systemctl mask @daemons; userdel $user; rm -rf /etc/vgpu/vgpu.conf /etc/vgpu/slurm-cards /etc/slurm/*.conf /var/lib/slurm/slurmctld/* /tmp/*.log");
    host('cat >/etc/vgpu/gpus.conf', stdin => $conf);
    host('vgpuctl reload', timeout => 120);
    my $left = host('ls -d /run/vgpu/owners/* /run/vgpu/slurm/[0-9]* /run/vgpu/containers/* 2>/dev/null', fail => 1);
    die "left: $left" if $left =~ /\S/;
    return;
}

1;
