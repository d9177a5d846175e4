# SPDX-License-Identifier: MIT
# The virtual GPU host (L1) with everything of ours installed in it.
package VGPU::Lab;

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename qw(dirname);
use VGPU::Command;

my $top = abs_path(dirname(__FILE__) . '/../../../..');
my $stage = 'build/system/stage';
our $rig_name = $ENV{RIG_NAME} // 'system';
our $guest_init = $ENV{VGPU_GUEST_INIT} // '/sbin/init';

sub top { return $top }

sub rig {
    my (@words) = @_;
    return ("$top/tests/rig/rig", '--name', $rig_name, @words);
}

# A shell command in L1, run to its end: its output.
sub host {
    my ($command, %opt) = @_;
    return VGPU::Command::run([rig('run', '--', 'bash', '-c', $command)],
        name => "[L1] $command", %opt);
}

# The same, started.
sub host_job {
    my ($command) = @_;
    return VGPU::Command::start([rig('run', '--', 'bash', '-c', $command)],
        name => "[L1] $command");
}

# Builds what runs in the rig, in its Debian tree, and installs it into a staging directory. The
# module goes there as it is built: DKMS would build the same again, slowly, in L1.
sub build {
    my $script = <<"SH";
set -e
kernel=\$(ls /lib/modules | head -n 1)
make --no-print-directory -j\$(nproc) --output-sync=target KVER=\$kernel module registrar engine guest sandbox-probe guard-programs bench-governor-programs
rm -rf $stage
make --no-print-directory -s KVER=\$kernel install DESTDIR=$stage
install -D -m 644 build/module-\$kernel/mdev_vgpu.ko $stage/usr/lib/modules/\$kernel/updates/mdev_vgpu.ko
strip --strip-debug $stage/usr/lib/modules/\$kernel/updates/mdev_vgpu.ko
# depmod is slow in L1, so its indexes are made here, over links to the kernel's modules.
rm -rf build/system/depmod
mkdir -p build/system/depmod/lib/modules
cp -rs /lib/modules/\$kernel build/system/depmod/lib/modules/
cp -r $stage/usr/lib/modules/\$kernel/updates build/system/depmod/lib/modules/\$kernel/
depmod -b build/system/depmod \$kernel
find build/system/depmod/lib/modules/\$kernel -maxdepth 1 -name 'modules.*' -type f -exec cp -t $stage/usr/lib/modules/\$kernel/ {} +
modinfo -F version build/module-\$kernel/mdev_vgpu.ko | sed 's/^/mdev_vgpu.ko /'
build/engine/vgpu-engine --version
SH
    return VGPU::Command::run([rig('build', '--', 'bash', '-c', $script)],
        timeout => 5400, echo => '      ', name => '[build] make');
}

# The VMs have 3 GiB each, of which they touch a part.
sub up {
    VGPU::Command::run([rig('up', '--init', 'systemd', '--gpu', 'pci', '--kernel', '6.12',
        '--memory', '8G', '--append', $ENV{VGPU_L1_WORDS} // '')], timeout => 5400, echo => '      ');
    return;
}

# Puts the staging directory over L1's root.
sub install {
    VGPU::Command::run(['bash', '-c', 'tar -C "$0" --owner=0 --group=0 -czf - . | "$@"',
        "$top/$stage", rig('run', '--', 'tar', '-C', '/', '-xzf', '-', '--no-overwrite-dir')],
        name => '[L1] make install', timeout => 120);
    host('systemctl daemon-reload && systemctl reload dbus && udevadm control --reload', timeout => 120);
    return;
}

# The PCI address of L1's GPU.
sub gpu {
    my ($gpu) = host("lspci -Dn -d 1af4:1050") =~ /^(\S+)/;
    return $gpu // die "L1 has no GPU\n";
}

# Says that this GPU is shared, and lets the registrar do it as at boot. Returns `mdevctl types`.
sub share {
    my ($gpu, $vram) = @_;
    host(<<"SH", timeout => 120);
set -e
mkdir -p /etc/vgpu
printf '[gpu %s]\nmode=shared\nvram=%s\n' $gpu $vram >/etc/vgpu/gpus.conf
systemctl enable --now vgpu-registrar.service
SH
    return host('mdevctl types');
}

# What the kernel of L1 complains about; empty where all is well.
sub kernel_complaints {
    return host(q{dmesg | grep -E 'BUG:|WARNING:|Oops|Call Trace|refcount|general protection|}
        . q{blocked for more than|leaked' || true});
}

# virtio-gpu, L1's driver of the GPU, gives memory back when the device answers, and does not wait for that when it is
# unbound: it warns that memory managers and its cache of commands are not empty. That is its own affair; dies of
# whatever else the kernel complains about.
sub no_complaint_but_virtio_gpus {
    my $own = qr/drm_mm_takedown|Call Trace/;
    my @caches = host('dmesg') =~ /BUG (\S+) .*Objects remaining/g;
    $own = qr/$own|__slab_err|kmem_cache_destroy/ if @caches && !grep { $_ ne 'virtio-gpu-vbufs' } @caches;
    my @complaints = grep { !/$own/ } split /\n/, kernel_complaints();
    die join("\n", "the host's kernel complains:", @complaints, '') if @complaints;
    return;
}

# What the rig knows of a test that failed: L1's console, its kernel's log, and its processors as QEMU sees them.
sub keep_traces {
    my ($path) = @_;
    my $run = VGPU::Command::run([rig('path', 'run')]);
    chomp $run;
    my %traces = (
        console => ['tail', '-c', '200000', "$run/console.log"],
        dmesg => [rig('run', '--', 'dmesg')],
        registers => [rig('monitor', 'info registers -a')],
        (map { ("lapic$_" => [rig('monitor', "info lapic $_")]) } 0, 1),
    );
    for my $kind (keys %traces) {
        my $said = eval { VGPU::Command::run($traces{$kind}, timeout => 60, fail => 1) } // $@;
        open my $out, '>', "$path.$kind.log" or die "$path.$kind.log: $!\n";
        print {$out} $said;
        close $out or die "$path.$kind.log: $!\n";
    }
    return;
}

# What is wrong with the rig itself; undef: nothing that can be seen, or a kernel that complains, which is ours to mend.
sub failure {
    my $run = VGPU::Command::run([rig('path', 'run')]);
    chomp $run;
    my $console = VGPU::Command::run(['tail', '-c', '200000', "$run/console.log"], fail => 1);
    return if $console =~ /BUG:|Oops|Kernel panic|general protection|KASAN/;
    return 'a processor of L1 gets no timer interrupts' if $console =~ /Possible timer handling issue/;
    return 'L1 does not answer' if !is_up();
    return;
}

sub down {
    VGPU::Command::run([rig('down')], timeout => 120, fail => 1);
    return;
}

sub is_up {
    VGPU::Command::run([rig('run', '--', 'true')], timeout => 60, fail => 1);
    return $VGPU::Command::status == 0;
}

# Makes `rig guest NAME run` reach a VM that libvirt has started.
sub adopt_guest {
    my ($name, $address) = @_;
    VGPU::Command::run([rig('guest', $name, 'adopt', $address)]);
    return;
}

# Ends the connection to a guest that is not there any more: it would hang for minutes.
sub hang_up {
    my ($name) = @_;
    my $dir = VGPU::Command::run([rig('path', 'run')]);
    chomp $dir;
    VGPU::Command::run(['ssh', '-F', "$dir/ssh_config", '-O', 'exit', "l2-$name"], fail => 1);
    return;
}

1;
