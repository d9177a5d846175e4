#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# The engines' confinement, tried from inside: a program that attempts what must be refused runs in the
# engine's place in its unit, and as a render worker of an engine. Outside the same attempts must get
# through, so that each of them tests something.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use VGPU::Test;

my ($red, $blue) = baseline();
my $gpu = VGPU::Lab::gpu();
my $type = $red->{vgpu}{type} =~ s/half$/sixteenth/r;
my $victim = VGPU::Vgpu->new(9, $type);
my $probe = '/usr/local/bin/sandbox-probe';
my $server = '/usr/libexec/virgl_render_server';

# The program and what it aims at: red's vGPU and engine, another GPU's node (vgem has one), blue's disk.
sub prepare {
    VGPU::Command::run([VGPU::Lab::rig('put', 'build/system/sandbox-probe', $probe)]);
    return VGPU::Lab::host(<<"SH");
set -e
modprobe vgem
other=\$(ls -d /sys/devices/faux/vgem/drm/renderD* /sys/devices/platform/vgem/drm/renderD* 2>/dev/null | head -n 1)
mkdir -p /usr/local/share
echo "/dev/vgpu/$red->{vgpu}{uuid} /dev/vgpu/$victim->{uuid} /dev/dri/\${other##*/}" \\
    "/var/lib/libvirt/images/blue.qcow2 \$(systemctl show -P MainPID $red->{vgpu}{unit})" \\
    >/usr/local/share/sandbox-probe.targets
cat /usr/local/share/sandbox-probe.targets
SH
}

# Starts a vGPU whose unit is changed by the drop-in $change, waits until the program in it has spoken, and
# returns what it said.
sub inside {
    my ($change) = @_;
    my $dir = "/etc/systemd/system/$victim->{unit}.d";
    VGPU::Lab::host(<<"SH");
set -e
mkdir -p $dir
printf '[Service]\\nRestart=no\\n%s\\n' '$change' >$dir/probe.conf
systemctl daemon-reload
SH
    my $since = VGPU::Lab::host('journalctl -n 0 --show-cursor -o cat | sed "s/^-- cursor: //"');
    chomp $since;
    my $journal = "journalctl -o cat -q --after-cursor='$since' -u $victim->{unit}";
    $victim->start($gpu);
    my $text = VGPU::Lab::host(<<"SH", timeout => 200);
for try in {1..300}; do
    ! $journal | grep -qE '^(1\\.\\.|Bail)' || break
    sleep 0.5
done
$journal
SH
    $victim->remove;
    VGPU::Lab::host("rm -r $dir; systemctl daemon-reload");
    return $text;
}

# A test point for each of the program's; what it lists beside them is shown.
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

my $ready = point('the program is in place', \&prepare);
report('outside, as root', VGPU::Lab::host("$probe --outside 2>&1", fail => 1, timeout => 120)) if $ready;
report('in the engine\'s place', inside("ExecStart=\nExecStart=$probe --engine")) if $ready;
report('as a render worker', inside("BindReadOnlyPaths=$probe:$server")) if $ready;

point('what the filter lets through is what systemd says', sub {
    my $calls = VGPU::Lab::host("systemctl show -P SystemCallFilter $red->{vgpu}{unit}");
    my @calls = split ' ', $calls;
    die "no filter: $calls\n" if @calls < 100;
    return scalar(@calls) . " system calls: $calls";
});

point('the other vGPUs have noticed nothing', sub {
    return join "\n", map { computes($_) } $red, $blue;
});

point('the kernel of the host has nothing to complain about', sub {
    my $complaints = VGPU::Lab::kernel_complaints();
    die $complaints if $complaints =~ /\S/;
});

done_testing();
