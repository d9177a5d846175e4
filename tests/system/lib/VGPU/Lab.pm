# SPDX-License-Identifier: MIT
# The virtual GPU host (L1) with all of our programs installed.
package VGPU::Lab;

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Path qw(make_path remove_tree);
use Text::ParseWords qw(shellwords);
use VGPU::Command;
use VGPU::KernelLog;

my $top = abs_path(dirname(__FILE__) . '/../../../..');
my $stage = 'build/system/stage';
our $rig_name = $ENV{RIG_NAME} // 'system';
# The kernel of L1.
our $kernel = $ENV{VGPU_L1_KERNEL} // '6.12';
$VGPU::Command::patience = 5 if $kernel =~ /-debug\z/;
our $guest_init = $ENV{VGPU_GUEST_INIT} // '/sbin/init';

# Where logs and traces go; VGPU_LOGS is for the test of check itself.
our $logs = $ENV{VGPU_LOGS} // 'build/system/logs';

sub top { return $top }

# VGPU_RIG: another program instead of the rig, for the test of check itself.
sub rig {
    my (@words) = @_;
    return ($ENV{VGPU_RIG} // "$top/tests/rig/rig", '--name', $rig_name, @words);
}

# The words of an ssh command that reaches L1 or a guest. The rig is asked once per process, because its script takes
# longer than most commands.
my %ssh;

sub ssh {
    my ($guest) = @_;
    my $words = $ssh{ "$rig_name/" . ($guest // '') } //= do {
        my $said = VGPU::Command::run([rig('ssh-command', $guest // ())]);
        [shellwords($said)];
    };
    return @$words;
}

# An ssh command line that runs $command in the login shell (bash) of L1 or of a guest. The shell outlives the command and
# turns death by a signal into 128 + N. Without it ssh would exit with 255, as it does when the connection breaks.
sub remote_argv {
    my ($guest, $command) = @_;
    return [ssh($guest), "$command\nexit \$?"];
}

# A shell command in L1, run to its end: its output.
sub host {
    my ($command, %opt) = @_;
    return VGPU::Command::run(remote_argv(undef, $command), name => "[L1] $command", remote => 1, %opt);
}

# The same, started.
sub host_job {
    my ($command) = @_;
    return VGPU::Command::start(remote_argv(undef, $command), name => "[L1] $command", remote => 1);
}

# Builds everything that runs in the rig, in its Debian tree, and installs it into a staging directory. Files that make has
# built before are reused. The module is taken as built, because DKMS would build it again, slowly, in L1. The images of
# L1 and of the guests are made meanwhile, if the cache lacks them. @how: more words of `stage`. Returns both jobs.
sub start_build {
    my (@how) = @_;
    return VGPU::Command::start([rig('prepare', '--kernel', $kernel)], name => '[build] images'),
        VGPU::Command::start([rig('build', '--kernel', $kernel, '--', 'tests/system/stage', $stage, @how)], name => '[build] make');
}

# What the build has said.
sub end_build {
    my ($images, $make) = @_;
    my $said = $make->wait(5400, echo => '      ');
    $images->wait(5400);
    return $said;
}

sub build { return end_build(start_build()) }

# The VMs have 3 GiB each, of which they touch a part. A test file may not log more than the kernel keeps
# (VGPU::KernelLog). VGPU_RIG_OPTIONS: more options of `rig up`.
sub up {
    VGPU::Command::run([rig('up', '--init', 'systemd', '--gpu', 'pci', '--kernel', $kernel, '--memory', '8G',
        '--append', 'log_buf_len=4M ' . ($ENV{VGPU_L1_WORDS} // ''), split ' ', $ENV{VGPU_RIG_OPTIONS} // '')], timeout => 5400, echo => '      ');
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

# Runs $code in another rig of that name: a second GPU host.
sub at {
    my ($name, $code) = @_;
    local $rig_name = $name;
    return $code->();
}

# The PCI address of L1's GPU.
sub gpu {
    my ($gpu) = host("lspci -Dn -d 1af4:1050") =~ /^(\S+)/;
    return $gpu // die "L1 has no GPU\n";
}

# Shares this GPU, and lets the registrar register it as at boot. Returns `mdevctl types`.
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

# Complaints of L1's kernel since this test file began; empty if there are none.
sub kernel_complaints {
    return join '', map { "$_\n" } VGPU::KernelLog::complaints('L1', host(VGPU::KernelLog::unread()));
}

# Keeps the rig's consoles, kernel logs, QEMU's output and its monitor's answers in $dir. Returns lines that say whether
# L1 answered, and if not, what is known of why.
sub keep_traces {
    my ($dir) = @_;
    remove_tree($dir);
    make_path($dir);
    my $said = VGPU::Command::run([rig('logs', abs_path($dir))], timeout => 300, fail => 1);
    open my $in, '<', "$dir/state" or return ("the rig's state could not be read: $said");
    return <$in>;
}

# A sentence if QEMU's monitor proves the known fault of the rig; else undef.
sub fault {
    my $said = VGPU::Command::run([rig('fault')], timeout => 120, fail => 1);
    return $VGPU::Command::status == 0 ? $said =~ s/\s+\z//r : undef;
}

sub down {
    VGPU::Command::run([rig('down')], timeout => 120, fail => 1);
    return;
}

sub is_up { return defined eval { host('true') } }

# Makes `rig guest NAME run` reach a VM that libvirt has started.
sub adopt_guest {
    my ($name, $address) = @_;
    VGPU::Command::run([rig('guest', $name, 'adopt', $address)]);
    return;
}

# Ends the connection to a guest that does not exist any more: it would hang for minutes.
sub hang_up {
    my ($name) = @_;
    VGPU::Command::run([ssh($name), '-O', 'exit'], fail => 1);
    return;
}

1;
