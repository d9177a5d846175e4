# SPDX-License-Identifier: MIT
# Complaints in the kernel logs of L1 and of the guests. Each one makes the running test file red, unless
# kernel-log.allow lists it for that file.
#
# Each machine remembers in /run how far its log was read. So a test file answers for everything since the previous
# file, and the first file of a rig also answers for the boot. Consoles keep the last words of a kernel that died.
package VGPU::KernelLog;

use strict;
use warnings;

use File::Basename qw(basename dirname);

# DRM drivers mark their errors with "*ERROR*".
my $complaint = qr/
    \bBUG\b | WARNING: | \bOops\b | Kernel\ panic | \bUBSAN\b | \bKASAN\b | \bKCSAN\b | \bKFENCE\b
    | general\ protection | Possible\ timer\ handling\ issue | refcount_t | \bleaked\b | kmemleak:\ \d
    | blocked\ for\ more\ than | \brcu\b.*\b(?:INFO:|stall) | soft\ lockup | hard\ LOCKUP
    | possible\ (?:circular|irq|recursive)\ .*lock | inconsistent\ lock\ state | suspicious\ RCU\ usage
    | unable\ to\ handle | Bad\ page | list_(?:add|del)\ corruption | scheduling\ while\ atomic | \*ERROR\*
/x;

# /dev/kmsg is not affected by `dmesg --clear`. It ends with an error where messages are gone, and goes on when it is read
# again.
my $mark = '/run/vgpu-kernel-log';

# A shell command that prints the messages that no test file has read yet, as "SEQUENCE MESSAGE". Where the kernel has
# overwritten some, a line says so, which is a complaint. $from: another place than /dev/kmsg.
sub unread {
    my ($from) = @_;
    my $read = 'dd if=' . ($from // '/dev/kmsg') . ' iflag=nonblock bs=8192 2>/dev/null';
    return "{ $read; $read; } | sed -n 's/^[0-9]*,\\([0-9]*\\),[^;]*;/\\1 /p' | awk -v seen=\"\$(cat $mark 2>/dev/null || echo -1)\" '"
        . '$1 > seen { if ($1 > seen + 1) print $1 " WARNING: the kernel log has lost messages " seen + 1 " to " $1 - 1; print; seen = $1 }'
        . "'";
}

# Marks the messages up to the last one of $log as read.
sub mark_read {
    my ($log) = @_;
    my ($last) = $log =~ /^(\d+) .*\Z/m;
    return defined $last ? "echo $last >$mark" : 'true';
}

# A unit in L1 collects the guests' consoles in one file, because libvirt truncates a VM's console at each start.
my $consoles = '/run/rig-consoles';

sub follow_consoles {
    my (@files) = @_;
    return 'systemctl -q is-active rig-consoles || systemd-run -q --collect --unit=rig-consoles '
        . "-p StandardOutput=append:$consoles tail -q -n +1 -F @files 2>/dev/null\n";
}

sub unread_consoles {
    return "[ ! -e $consoles ] || { tail -c +\$((1 + \$(cat $consoles.seen 2>/dev/null || echo 0))) $consoles; "
        . "stat -c %s $consoles >$consoles.seen; }";
}

# What kernel-log.allow lists for a test file: [WHERE, pattern]…
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

# The complaints in a log of $where ("L1" or a guest's name) that are not allowed for the running test file.
sub complaints {
    my ($where, $log, $file) = @_;
    my @expected = map { $_->[1] } grep { $_->[0] eq ($where eq 'L1' ? 'L1' : 'guest') } allowed($file // $0);
    return grep { my $line = $_; $line =~ $complaint && !grep { $line =~ $_ } @expected } split /\n/, $log;
}

1;
