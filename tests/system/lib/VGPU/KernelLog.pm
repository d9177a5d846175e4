# SPDX-License-Identifier: MIT
# What the kernels of L1 and of the guests complain about. A test file is red for each complaint that the file
# kernel-log.allow does not expect of it.
#
# Each machine remembers in /run how far its log was read, so that a file answers for what came since the file before it:
# the first one in a rig for the boot, too. Consoles have what a kernel that died said last.
package VGPU::KernelLog;

use strict;
use warnings;

use File::Basename qw(basename dirname);

# "*ERROR*" is how DRM drivers call theirs.
my $complaint = qr/
    \bBUG\b | WARNING: | \bOops\b | Kernel\ panic | \bUBSAN\b | \bKASAN\b | \bKCSAN\b | \bKFENCE\b
    | general\ protection | Possible\ timer\ handling\ issue | refcount_t | \bleaked\b | kmemleak:\ \d
    | blocked\ for\ more\ than | \brcu\b.*\b(?:INFO:|stall) | soft\ lockup | hard\ LOCKUP
    | possible\ (?:circular|irq|recursive)\ .*lock | inconsistent\ lock\ state | suspicious\ RCU\ usage
    | unable\ to\ handle | Bad\ page | list_(?:add|del)\ corruption | scheduling\ while\ atomic | \*ERROR\*
/x;

# Shell: the kernel's messages as "SEQUENCE MESSAGE". /dev/kmsg shows them after `dmesg --clear`, too.
my $read = q{dd if=/dev/kmsg iflag=nonblock bs=8192 2>/dev/null | sed -n 's/^[0-9]*,\([0-9]*\),[^;]*;/\1 /p'};
my $mark = '/run/vgpu-kernel-log';

# Those that no file has read yet.
sub unread { return "$read | awk -v seen=\"\$(cat $mark 2>/dev/null || echo -1)\" '\$1 > seen'" }

# From now on all that came until now is read.
sub mark_read { return "$read | tail -n 1 | cut -d' ' -f1 >$mark" }

# What guests' consoles said since they were last asked for: a unit of L1's follows them, for libvirt begins a new file with
# each start of a VM.
my $consoles = '/run/vgpu-consoles';

sub follow_consoles {
    my (@files) = @_;
    return 'systemctl -q is-active vgpu-test-consoles || systemd-run -q --collect --unit=vgpu-test-consoles '
        . "-p StandardOutput=append:$consoles tail -q -n +1 -F @files 2>/dev/null\n";
}

sub unread_consoles {
    return "[ ! -e $consoles ] || { tail -c +\$((1 + \$(cat $consoles.seen 2>/dev/null || echo 0))) $consoles; "
        . "stat -c %s $consoles >$consoles.seen; }";
}

# What is expected of a file of tests, as a list of [WHERE, pattern].
sub allowed {
    my ($file) = @_;
    my $list = dirname(__FILE__) . '/../../kernel-log.allow';
    my @allowed;
    open my $in, '<', $list or die "$list: $!\n";
    while (my $line = <$in>) {
        next if $line =~ /^\s*(?:#|$)/;
        my ($files, $where, $pattern) = $line =~ m{^(\S+)\s+(\S+)\s+/(.*)/\s*$} or die "$list:$.: FILES WHERE /PATTERN/\n";
        push @allowed, [$where, qr/$pattern/] if $files eq '*' || grep { $_ eq basename($file) } split /,/, $files;
    }
    return @allowed;
}

# The complaints in a log of $where ("L1" or a guest's name) that are not expected of the file that runs.
sub complaints {
    my ($where, $log, $file) = @_;
    my @expected = map { $_->[1] } grep { $_->[0] eq ($where eq 'L1' ? 'L1' : 'guest') } allowed($file // $0);
    return grep { my $line = $_; $line =~ $complaint && !grep { $line =~ $_ } @expected } split /\n/, $log;
}

1;
