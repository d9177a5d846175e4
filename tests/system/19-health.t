#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# GPUs that are unhealthy, or short of memory: who is notified, that nothing new is placed there, who is stopped, and
# that all others go on.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use JSON::PP;
use VGPU::Slice;
use VGPU::Test;

my ($red, $blue) = baseline();
my $gpu = VGPU::Lab::gpu();
my $device = "/sys/bus/pci/devices/$gpu";
my $used = "/run/vgpu/vram-used/$gpu";
my $nobody = 'setpriv --reuid 65534 --regid 65534 --clear-groups';
my $conf = VGPU::Lab::host('cat /etc/vgpu/gpus.conf');

sub host { return VGPU::Lab::host(@_) }

sub shown {
    my ($seen) = grep { $_->{Address} eq $gpu } @{ decode_json(host('vgpuctl -o json gpu list')) };
    return $seen;
}

# Waits until the GPU's health has exactly the findings @$why; []: healthy.
sub health_when {
    my ($good, $words) = @_;
    my $seen;
    for (1 .. 50) {
        $seen = shown();
        my $reasons = join '; ', @{ $seen->{HealthReasons} };
        return $reasons if $good ? $seen->{Healthy} : !$seen->{Healthy} && $reasons =~ $words;
        sleep 0.3;
    }
    die JSON::PP->new->canonical->pretty->encode($seen);
}

# The engine of a tenant's vGPU dies while its guest has it open, and the guest takes the next one.
sub lose_engine {
    my ($tenant) = @_;
    host('kill -KILL ' . $tenant->{vgpu}->engine_pid);
    $tenant->{vgpu}->wait_engine;
    $tenant->rebind($tenant->{vgpu});
    return;
}

host('systemctl start vgpud');

point("a vGPU's engine dies repeatedly beside one that lives: an event, and the GPU stays healthy", sub {
    health_when(1);
    my $events = VGPU::Lab::host_job('vgpuctl events');
    sleep 1;
    host("systemctl reset-failed $blue->{vgpu}{unit}", fail => 1);
    lose_engine($blue) for 1 .. 3;
    $events->expect(qr/\Q$blue->{vgpu}{uuid}\E dies repeatedly.*not considered the cause/, 30);
    $events->stop;
    return health_when(1);
});

point('the engines of both: not healthy, an event, nothing new is put there', sub {
    my $events = VGPU::Lab::host_job('vgpuctl events');
    sleep 1;
    lose_engine($red) for 1 .. 3;
    my $why = health_when(0, qr/dies repeatedly/);
    $events->expect(qr/is not healthy/, 30);
    $events->stop;
    my $said = host('vgpuctl vgpu create eighth 2>&1', fail => 1);
    die "status $VGPU::Command::status: $said" if $VGPU::Command::status != 7 || $said !~ /not healthy/;
    return "$why\n$said" . computes($blue);
});

my $other = VGPU::Compute::vulkan($red, $red->gpu_of($red->{vgpu}), '--forever');
$other->expect(qr/^OK round 1:/m, 120);

point('a held finding stays over a restart of vgpud, until an administrator clears it', sub {
    host('systemctl restart vgpud');
    health_when(0, qr/dies repeatedly/);
    my $refused = host("$nobody vgpuctl gpu clear $gpu 2>&1", fail => 1);
    die "status $VGPU::Command::status: $refused" if $VGPU::Command::status != 5;
    host("vgpuctl gpu clear $gpu");
    health_when(1);
    my $uuid = 'a9e47000-0000-4000-8000-000000000019';
    host("vgpuctl vgpu create eighth --uuid $uuid && vgpuctl slice remove $uuid", timeout => 120);
    return $refused;
});

point('a link that loses lanes: a notice when udev says so, which ends by itself and closes nothing', sub {
    my $width = host("cat $device/max_link_width $device/current_link_width; cat \$(readlink -f $device)/../max_link_width");
    host(<<"SH");
set -e
mkdir -p /run/link && echo 16 >/run/link/max && echo 4 >/run/link/now
mount --bind /run/link/max $device/max_link_width
mount --bind /run/link/max \$(readlink -f $device)/../max_link_width
mount --bind /run/link/now $device/current_link_width
udevadm trigger --action=change $device
SH
    my $notice = qr/^Findings: .*link \(notice\): .*4 lanes and could have 16/m;
    VGPU::Slice::soon(sub { host("vgpuctl gpu show $gpu") =~ $notice }, 'there is no notice');
    my $why = health_when(1);
    host("umount $device/current_link_width $device/max_link_width \$(readlink -f $device)/../max_link_width; "
        . "udevadm trigger --action=change $device");
    VGPU::Slice::soon(sub { host("vgpuctl gpu show $gpu") !~ $notice }, 'the notice stays');
    return "$width$why";
});

point('short of memory: told, the command, then best-effort engines are stopped; the others go on', sub {
    host(<<"SH", timeout => 120);
set -e
mkdir -p /run/vgpu/vram-used
printf '%swater-mark=64M\\npressure-command=/bin/sh -c "echo \$GPU \$FREE \$MARK \$VGPUS >/run/vgpu/said"\\n' '$conf' >/etc/vgpu/gpus.conf
printf '[pressure]\\ngrace=3\\n' >/etc/vgpu/vgpud.conf
systemctl restart vgpud
vgpuctl slice set $blue->{vgpu}{uuid} --class best-effort
echo 1000000 >$used
SH
    my $events = VGPU::Lab::host_job('vgpuctl events');
    my $signals = VGPU::Lab::host_job('busctl monitor --system --match "type=signal,member=MemoryPressure"');
    sleep 6;
    die "too soon:\n" . $events->output if $events->output =~ /free memory/;
    host("echo 500000000 >$used");
    $events->expect(qr/has .* of free memory and should have 64 MiB/, 30);
    $signals->expect(qr/MemoryPressure/, 10);
    host("timeout 20 sh -c 'until test -s /run/vgpu/said; do sleep 0.2; done'", timeout => 30);
    my $said = host('cat /run/vgpu/said');
    die $said if $said ne "$gpu 36870912 67108864 $blue->{vgpu}{uuid}\n";
    $events->expect(qr/the engine of vGPU \Q$blue->{vgpu}{uuid}\E .* was stopped/, 30);
    host("timeout 30 sh -c 'while systemctl -q is-active $blue->{vgpu}{unit}; do sleep 0.2; done'", timeout => 40);
    my $goes_on = keeps_computing($other, 2);
    my $refused = host('vgpuctl vgpu create eighth --class best-effort 2>&1', fail => 1);
    die "status $VGPU::Command::status: $refused" if $VGPU::Command::status != 7 || $refused !~ /memory was short/;
    $events->stop;
    $signals->stop;
    return "$said$refused$goes_on";
});

point('there is memory again: that is said, the engine started again serves its guest', sub {
    my $events = VGPU::Lab::host_job('vgpuctl events');
    sleep 1;
    host("echo 1000000 >$used");
    $events->expect(qr/has enough free memory again/, 30);
    $events->stop;
    host("systemctl start $blue->{vgpu}{unit}", timeout => 120);
    $blue->{vgpu}->wait_engine;
    $blue->rebind($blue->{vgpu});
    return computes($blue);
});

point('the other guest has computed all the time', sub {
    my $seen = keeps_computing($other, 1);
    return $seen . '; ' . VGPU::Compute::stop_right($red, $other);
});

point('the host is as before the test', sub {
    host(<<"SH", timeout => 120);
rm -rf $used /run/vgpu/said /etc/vgpu/vgpud.conf /run/link
printf '%s' '$conf' >/etc/vgpu/gpus.conf
vgpuctl slice set $blue->{vgpu}{uuid} --class guaranteed
systemctl restart vgpud
SH
    health_when(1);
});

done_testing();
