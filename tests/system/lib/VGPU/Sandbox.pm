# SPDX-License-Identifier: MIT
# The confinement of a unit's processes: checked from outside, and tried from inside by sandbox-probe, which takes the
# place of one of them. Test points that units share.
package VGPU::Sandbox;

use strict;
use warnings;

use VGPU::Command;
use VGPU::Lab;
use VGPU::Test;

our $probe = '/usr/local/bin/sandbox-probe';
our $server = '/usr/libexec/virgl_render_server';

# pid => { Uid, CapEff, ... } of every process of a unit.
sub processes {
    my ($unit) = @_;
    my $text = VGPU::Lab::host(<<"SH");
group=/sys/fs/cgroup\$(systemctl show -P ControlGroup $unit)
for pid in \$(find \$group -name cgroup.procs -exec cat {} +); do
    echo "pid \$pid \$(tr '\\0' ' ' </proc/\$pid/cmdline)"
    grep -E '^(Uid|Gid|Cap[A-Z][a-z]+|NoNewPrivs|Seccomp|NSpid):' /proc/\$pid/status
done
SH
    my (%all, $pid);
    for (split /\n/, $text) {
        if (/^pid (\d+) (.*)/) { $pid = $1; $all{$pid}{command} = $2 }
        elsif (/^(\w+):\s*(.*?)\s*$/) { $all{$pid}{$1} = $2 }
    }
    return \%all;
}

# Points: conditions for all of them.
sub confined {
    my ($where, $all) = @_;
    my %wanted = (
        'no capability in any set' => sub { !grep { $_[0]{$_} =~ /[1-9a-f]/ }
                qw(CapEff CapPrm CapInh CapBnd CapAmb) },
        'NoNewPrivs' => sub { $_[0]{NoNewPrivs} == 1 },
        'a seccomp filter' => sub { $_[0]{Seccomp} == 2 },
        'not root' => sub { !grep { $_ == 0 } split ' ', "$_[0]{Uid} $_[0]{Gid}" },
    );
    for my $what (sort keys %wanted) {
        point("$where: $what", sub {
            my @bad = grep { !$wanted{$what}->($all->{$_}) } sort keys %$all;
            die map({ join(' ', $_, %{ $all->{$_} }) . "\n" } @bad) if @bad;
            return scalar(keys %$all) . ' processes';
        });
    }
    return;
}

# systemd's own rating; dies if it is worse than OK.
sub graded {
    my ($unit) = @_;
    my $text = VGPU::Lab::host("systemd-analyze security --no-pager $unit | tail -n 1");
    my ($level) = $text =~ /: ([0-9.]+)/;
    die $text if !defined $level || $level > 3;
    return $text;
}

# The program and its targets: red's vGPU and engine, another GPU's node (vgem has one), blue's disk. $own: the vGPU
# of its unit.
sub prepare {
    my ($red, $blue, $own) = @_;
    VGPU::Command::run([VGPU::Lab::rig('put', 'build/system/sandbox-probe', $probe)]);
    return VGPU::Lab::host(<<"SH");
set -e
modprobe vgem
other=\$(ls -d /sys/devices/faux/vgem/drm/renderD* /sys/devices/platform/vgem/drm/renderD* 2>/dev/null | head -n 1)
rm -f /opt/sandbox-probe.socket /dev/shm/sandbox-probe.socket
systemctl is-active -q sandbox-probe-sockets || systemd-run --unit=sandbox-probe-sockets --collect \\
    perl -MIO::Socket::UNIX -e 'umask 0; my \@all = map { IO::Socket::UNIX->new(Listen => 64, Local => \$_) or die "\$_: \$!" } \@ARGV; sleep' \\
    /opt/sandbox-probe.socket /dev/shm/sandbox-probe.socket
timeout 20 sh -c 'until [ -S /dev/shm/sandbox-probe.socket ]; do sleep 0.1; done'
mkdir -p /usr/local/share
echo "/dev/vgpu/$red->{vgpu}{uuid} /dev/vgpu/$own /dev/dri/\${other##*/}" \\
    "/var/lib/libvirt/images/blue-root.qcow2 \$(systemctl show -P MainPID $red->{vgpu}{unit})" \\
    >/usr/local/share/sandbox-probe.targets
cat /usr/local/share/sandbox-probe.targets
SH
}

# $unit with the lines $change in a drop-in: $begin starts it, $end ends it. Waits for the program's output in it, and
# returns that.
sub inside {
    my ($unit, $change, $begin, $end) = @_;
    my $dir = "/etc/systemd/system/$unit.d";
    VGPU::Lab::host(<<"SH");
set -e
mkdir -p $dir
printf '[Service]\\nRestart=no\\n%s\\n' '$change' >$dir/probe.conf
systemctl daemon-reload
SH
    my $since = VGPU::Lab::host('journalctl -n 0 --show-cursor -o cat | sed "s/^-- cursor: //"');
    chomp $since;
    my $journal = "journalctl -o cat -q --after-cursor='$since' -u $unit";
    $begin->();
    my $text = VGPU::Lab::host(<<"SH", timeout => 200);
for try in {1..300}; do
    ! $journal | grep -qE '^(1\\.\\.|Bail)' || break
    sleep 0.5
done
$journal
SH
    $end->();
    VGPU::Lab::host("rm -r $dir; systemctl daemon-reload");
    # Of the first run, if there were several.
    return $text =~ s/^1\.\.\d+\n\K.*//msr;
}

# A test point for each of the program's; other lines of it are shown.
sub report {
    my ($where, $text) = @_;
    my $count = 0;
    for my $line (grep { /^(?:not )?ok \d+ - / } split /\n/, $text) {
        my ($bad, $what) = $line =~ /^(not )?ok \d+ - (.*)/;
        $count++;
        point("$where: $what", sub { die "$line\n" if $bad });
    }
    point("$where: it came to its end", sub {
        my ($plan) = $text =~ /^1\.\.(\d+)$/m;
        die VGPU::Command::tail($text) if !$plan || $plan != $count;
        return join "\n", $text =~ /^# ((?:may|has) .*)$/mg;
    });
    return;
}

1;
