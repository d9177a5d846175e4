#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# The Debian packages on a fresh host: those of the first release (0.1.0) installed by apt, sharing the GPU, upgraded to
# this checkout's while a guest computes, not removed from under it, there after a reboot, also into a new kernel, and
# purged without a trace. It ends the rig that it finds and brings up one that has nothing of ours; DKMS builds the module
# in it, which takes long on emulated processors: make check-upgrade.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../system/lib";
use VGPU::Host;
use VGPU::Test;

my $packages = 'mdev-vgpu mdev-vgpu-dkms mdev-vgpu-doc vgpu-card vgpu-engine vgpu-governor vgpu-host-agent vgpu-libvirt '
    . 'vgpu-mdevctl vgpu-registrar';
my $apt = 'DEBIAN_FRONTEND=noninteractive apt-get -q -y';
my $dkms_takes = 1800;
my $first_release = '03e6d35';

sub host { return VGPU::Lab::host(@_) }
sub show { my ($unit, $property) = @_; my $value = host("systemctl show -P $property '$unit'"); chomp $value; return $value }

# The first release had no vgpu-card.
sub versions {
    my ($number) = @_;
    my $there = $number > 1 ? $packages : $packages =~ s/vgpu-card //r;
    return host("dpkg-query -W -f '\${Package} \${Version} \${db:Status-Status}\\n' $there");
}

# The packages of a commit, or of the checkout, without those for which this host lacks Cockpit, and without those of
# a fleet. $number ends their version.
sub build {
    my ($number, $commit) = @_;
    my $version = $commit ? "git show $commit:mdev-driver/VERSION" : 'cat mdev-driver/VERSION';
    my $script = "set -e; DEB_VERSION=\$($version)+\$0 packaging/make-deb \$2; rm -rf \$1; mkdir -p \$1; cp build/deb/{mdev,vgpu}-*.deb \$1";
    return VGPU::Command::run(['bash', '-c', $script, $number, "build/system/debs/$number", $commit // ''], timeout => 3600);
}

sub install {
    my ($number) = @_;
    my $said = host("$apt install --no-install-recommends /root/debs/$number/*.deb", timeout => $dkms_takes);
    my @wrong = grep { !/\+$number installed$/ } split /\n/, versions($number);
    die "@wrong\n$said" if @wrong;
    return versions($number);
}

# The program that a process runs: "(deleted)" follows where the file was replaced since.
sub program { my ($pid) = @_; my $path = host("readlink /proc/$pid/exe"); chomp $path; return $path }
sub arbiter { return 'vgpu-arbiter@' . VGPU::Lab::gpu() . '.service' }

point('the packages of 0.1.0 and of this checkout', sub { return build(1, $first_release) . build(2) });

point('a fresh host', sub {
    VGPU::Lab::down();
    VGPU::Lab::up();
    VGPU::Command::run([VGPU::Lab::rig('put', 'build/system/debs', '/root/')], timeout => 120);
    my $found = host('find /usr /etc /var/lib /run -xdev -iname "*vgpu*"');
    die "it has something of ours:\n$found" if $found =~ /\S/;
});

my $began = time;

point('apt installs 0.1.0; vgpud runs, and both services come with the next boot', sub {
    my $said = install(1);
    die "vgpud is not active\n" if show('vgpud.service', 'ActiveState') ne 'active';
    host('systemctl is-enabled vgpud.service vgpu-registrar.service');
    return $said . host('vgpuctl gpu list');
});

point('a GPU is shared', sub { return VGPU::Lab::share(VGPU::Lab::gpu(), '512M') });

my ($red, $blue) = baseline();
my @vgpus = map { $_->{vgpu} } $red, $blue;
my $free = VGPU::Host::ledger();

point('guests compute with it', sub {
    my @computed = map { computes($_) } $red, $blue;
    my $took = sprintf '%.1f minutes from apt install to guests that compute, DKMS on emulated processors included', (time - $began) / 60;
    host("mdevctl modify -u $_->{uuid} --auto") for @vgpus;
    return join "\n", @computed, $took;
});

point("libvirt's AppArmor confines the VM, and refuses it nothing that a vGPU takes", sub {
    my $label = host('cat /proc/$(cat /run/libvirt/qemu/red.pid)/attr/current');
    die "it is $label" if $label !~ /^libvirt-\S+ \(enforce\)/;
    my $refused = host('dmesg | grep "apparmor=.DENIED." | grep -E "vfio|vgpu|mdev"', fail => 1);
    die $refused if $refused =~ /\S/;
    return $label;
});

my $job = VGPU::Compute::vulkan($red, $red->gpu_of($red->{vgpu}), '--forever');
$job->expect(qr/^OK round 1:/m, 120);
my %before = (engine => $red->{vgpu}->engine_pid, vgpud => show('vgpud.service', 'MainPID'), arbiter => show(arbiter(), 'MainPID'));

point('upgraded to this checkout while a guest computes: its engine is the same, vgpud and the arbiter are new', sub {
    my $said = install(2);
    $said .= keeps_computing($job);
    my %now = (engine => $red->{vgpu}->engine_pid, vgpud => show('vgpud.service', 'MainPID'), arbiter => show(arbiter(), 'MainPID'));
    die "engine $before{engine}, now $now{engine}\n" if $now{engine} != $before{engine};
    die "vgpud or arbiter are as before: $now{vgpud}, $now{arbiter}\n"
        if $now{vgpud} == $before{vgpud} || $now{arbiter} == $before{arbiter} || !$now{vgpud} || !$now{arbiter};
    my $program = program($now{engine});
    die "the engine runs $program\n" if $program ne '/usr/bin/vgpu-engine (deleted)';
    VGPU::Host::must_be_sane($free, @vgpus);
    return $said;
});

point('a new vGPU has a new engine', sub {
    my $new = VGPU::Vgpu->new(97, $vgpus[0]{type} =~ s/half$/sixteenth/r);
    $new->start(VGPU::Lab::gpu());
    my $program = program($new->wait_engine);
    $new->remove;
    die "it runs $program\n" if $program ne '/usr/bin/vgpu-engine';
    return $program;
});

point('what a VM uses is not removed: apt says which vGPU', sub {
    my $said = host("$apt remove vgpu-engine 2>&1", fail => 1, timeout => 300);
    die "it was removed:\n$said" if $VGPU::Command::status == 0;
    die $said if $said !~ /VMs have these vGPUs open: .*$vgpus[0]{uuid}/;
    return $said . keeps_computing($job);
});

# The vGPUs, VMs and programs are there as they were.
sub all_computes {
    $_->wait_engine(180) for @vgpus;
    ($red, $blue) = baseline();
    VGPU::Host::must_be_sane($free, @vgpus);
    return join "\n", host('uname -r; uptime'), map { computes($_) } $red, $blue;
}

point('after a reboot the GPU is shared, the vGPUs are there with their engines, and guests compute', sub {
    VGPU::Compute::stop_right($red, $job);
    $_->destroy for $red, $blue;
    VGPU::Command::run([VGPU::Lab::rig('reboot')], timeout => 900);
    return all_computes();
});

point("a newer kernel is installed by dpkg: DKMS builds the module for it", sub {
    VGPU::Command::run([VGPU::Lab::rig('prepare', '--kernel', 'backports', '--debs', 'build/system/new-kernel')], timeout => 1800);
    VGPU::Command::run([VGPU::Lab::rig('put', 'build/system/new-kernel/debs', '/root/new-kernel')], timeout => 300);
    my $said = host("$apt install --no-install-recommends /root/new-kernel/*.deb 2>&1 && rm -r /root/new-kernel", timeout => $dkms_takes);
    my $status = host('dkms status');
    my $running = host('uname -r') =~ s/\s+\z//r;
    my @built = $status =~ m{^mdev-vgpu/\S+, (\S+), x86_64: installed}mg;
    die "$said$status" if @built != 2 || !grep { $_ ne $running } @built;
    return $status;
});

point('rebooted into it, the vGPUs are there and guests compute', sub {
    my $before = host('uname -r');
    $_->destroy for $red, $blue;
    VGPU::Command::run([VGPU::Lab::rig('reboot', '--kernel', 'backports')], timeout => 900);
    die "the kernel is $before" if host('uname -r') eq $before;
    return all_computes();
});

point('purged: nothing is left but what the operator wrote', sub {
    $_->detach($_->{vgpu}) for $red, $blue;
    my $said = host("$apt purge \$(dpkg-query -W -f '\${db:Status-Status} \${Package}\\n' $packages 2>/dev/null | sed -n 's/^installed //p')",
        timeout => 600);
    my $left = host('find / /run -xdev \( -path /root -o -path /etc/vgpu -o -path /proc -o -path /sys -o -path /var/log -o -path /var/cache '
        . '-o -path /var/lib/dpkg -o -path /var/lib/apt \) -prune -o -iname "*vgpu*" -print; find /run/vgpu -mindepth 1 2>/dev/null; '
        . 'systemctl list-units --all --no-legend --plain "vgpu*"; grep ^mdev_vgpu /proc/modules; getent passwd | grep vgpu; ls /sys/bus/mdev/devices 2>/dev/null',
        fail => 1);
    die "$left\n$said" if $left =~ /\S/;
    my $kept = host('cat /etc/vgpu/gpus.conf; find /etc/mdevctl.d -type f');
    my @lost = grep { $kept !~ /$_->{uuid}/ } @vgpus;
    die "definitions are gone:\n$kept" if @lost || $kept !~ /^mode=shared$/m;
    return $kept;
});

done_testing();
