#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# systemd's handling of an engine: restarted by an operator, to a new version, hung, dying repeatedly. Its
# guest computes again each time after its driver was rebound; the other one does not notice.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use VGPU::Host;
use VGPU::Test;

my ($red, $blue) = baseline();
my $vgpu = $blue->{vgpu};
my $free = VGPU::Host::ledger();
my $other = VGPU::Compute::vulkan($red, $red->gpu_of($red->{vgpu}), '--forever --pause 1000');
$other->expect(qr/^OK round 1:/m, 120);

# Starts a program in blue, lets $fault happen, and returns how the program ended; it must fail, and not
# take wrong data for right.
sub computing_while {
    my ($fault) = @_;
    my $job = VGPU::Compute::vulkan($blue, $blue->gpu_of($vgpu),
        '--forever --size 65536 --iterations 100000 --timeout 60');
    $job->expect(qr/^OK round 1:/m, 120);
    $fault->();
    $job->wait(150, fail => 1);
    return 'the program ' . VGPU::Compute::must_have_failed($job) . '; ' . (split /\n/, $job->output)[-1];
}

sub computes_after_rebind {
    $blue->rebind($vgpu);
    my $seen = computes($blue);
    VGPU::Host::must_be_sane($free, $red->{vgpu}, $vgpu);
    return "$seen\nred: " . keeps_computing($other, 1);
}

point('systemctl restart while the guest computes: the program fails', sub {
    my $before = $vgpu->engine_pid;
    my $seen = computing_while(sub { VGPU::Lab::host("systemctl restart $vgpu->{unit}", timeout => 120) });
    die "the engine is still $before\n" if $vgpu->wait_engine == $before;
    return $seen;
});
point("after the engine's restart the guest computes again", \&computes_after_rebind);

point('another version of the engine is installed: those that run go on with theirs', sub {
    VGPU::Lab::host('cp /usr/bin/vgpu-engine /usr/bin/vgpu-engine.new && mv /usr/bin/vgpu-engine.new /usr/bin/vgpu-engine');
    my $seen = VGPU::Lab::host('readlink /proc/' . $vgpu->engine_pid . '/exe');
    die $seen if $seen !~ /deleted/;
    return $seen . keeps_computing($other, 1);
});
point('one engine is restarted for it while its guest has the driver bound', sub {
    VGPU::Lab::host("systemctl restart $vgpu->{unit}", timeout => 120);
    my $seen = VGPU::Lab::host('readlink /proc/' . $vgpu->wait_engine . '/exe');
    die $seen if $seen =~ /deleted/;
    return $seen;
});
point('its guest computes with the new one, the other with the old one', \&computes_after_rebind);

# The unit's own limit is a minute; the test uses a shorter one.
my $dropin = "/run/systemd/system/$vgpu->{unit}.d/patience.conf";
point('an engine that hangs is killed by the watchdog, and the next one started', sub {
    my $unit = VGPU::Lab::host("systemctl show -P WatchdogUSec $vgpu->{unit}");
    die "the unit has no watchdog: $unit" if $unit !~ /^1min/;
    VGPU::Lab::host(<<"SH", timeout => 120);
printf '[Service]\\nWatchdogSec=6\\n' >$dropin
systemctl daemon-reload
systemctl restart $vgpu->{unit}
SH
    $blue->rebind($vgpu);
    my $before = $vgpu->wait_engine;
    my $seen = computing_while(sub {
        VGPU::Lab::host("kill -STOP $before");
        VGPU::Lab::host("timeout 60 sh -c 'while [ -e /proc/$before ]; do sleep 0.3; done'", timeout => 80);
    });
    my $after = $vgpu->wait_engine;
    VGPU::Lab::host("rm $dropin; systemctl daemon-reload");
    my $journal = VGPU::Lab::host("journalctl -q -o cat -n 40 -u $vgpu->{unit} | grep \"Failed with result\" | tail -n 1");
    die "the journal says: $journal" if $journal !~ /watchdog/;
    return "engine $before, then $after; $seen\n$journal";
});
point("after the watchdog's restart the guest computes again", \&computes_after_rebind);

point('an engine that dies again and again is given up, and the operator sees it', sub {
    my $said = VGPU::Lab::host(<<"SH", timeout => 240);
for try in {1..400}; do
    pid=\$(systemctl show -P MainPID $vgpu->{unit})
    [ "\$pid" = 0 ] || kill -KILL "\$pid"
    ! journalctl -q -o cat -n 4 -u $vgpu->{unit} | grep -q 'Start request repeated too quickly' || break
    sleep 0.2
done
systemctl is-active $vgpu->{unit}
journalctl -q -o cat -n 3 -u $vgpu->{unit}
cat /sys/bus/mdev/devices/$vgpu->{uuid}/vgpu/state /sys/bus/mdev/devices/$vgpu->{uuid}/vgpu/failure
exit 0
SH
    die $said if $said !~ /repeated too quickly/ || $said !~ /engine=none/;
    return $said;
});
point('reset-failed and start, as the guide says, bring the engine back', sub {
    return VGPU::Lab::host("systemctl reset-failed $vgpu->{unit}; systemctl start $vgpu->{unit}", timeout => 120)
        . computes_after_rebind();
});

# An engine that no guest has used stays when its VM ends. The firmware (OVMF) has a driver for the vGPU, and uses it.
point('VMs that end do not count as failures: more of them than starts are allowed', sub {
    my $new = VGPU::Vgpu->new(36, $vgpu->{type} =~ s/quarter$/sixteenth/r);
    my $limits = "/run/systemd/system/$new->{unit}.d/limit.conf";
    VGPU::Lab::host("mkdir -p \$(dirname $limits); printf '[Unit]\\nStartLimitIntervalSec=1h\\nStartLimitBurst=1\\n' >$limits
        systemctl daemon-reload");
    $new->start(VGPU::Lab::gpu());
    my @pids = $new->wait_engine;
    my $device = "/sys/bus/mdev/devices/$new->{uuid}";
    for (1 .. 2) {
        VGPU::Lab::host("(timeout 200 sh -c 'until grep -q device=running $device/vgpu/state; do sleep 0.5; done'; echo quit)"
            . ' | qemu-system-x86_64 -nodefaults -nographic -machine q35 -m 256 -bios /usr/share/ovmf/OVMF.fd '
            . "-device vfio-pci,sysfsdev=$device -monitor stdio", timeout => 240);
        VGPU::Lab::host("timeout 60 sh -c 'while [ -e /proc/$pids[-1] ]; do sleep 0.2; done'", timeout => 80);
        push @pids, $new->wait_engine;
    }
    $new->remove;
    VGPU::Lab::host("rm -r \$(dirname $limits); systemctl daemon-reload");
    return "engines @pids";
});

point('vGPUs that go while their engines start leave nothing in the place of their node', sub {
    my $gpu = VGPU::Lab::gpu();
    my $new = VGPU::Vgpu->new(35, $vgpu->{type} =~ s/quarter$/sixteenth/r);
    for my $pause (map { $_ / 10 } 0 .. 9) {
        VGPU::Lab::host("mdevctl start -u $new->{uuid} -p $gpu -t $new->{type}; sleep $pause; mdevctl stop -u $new->{uuid}");
    }
    VGPU::Lab::host("udevadm settle; timeout 60 sh -c 'while systemctl -q is-active $new->{unit}; do sleep 0.2; done'", timeout => 80);
    my $left = VGPU::Lab::host('find /dev/vgpu /run/vgpu/slices -name "*' . substr($new->{uuid}, -4) . '" -ls');
    die $left if $left =~ /\S/;
    $new->start($gpu);
    my $pid = $new->wait_engine;
    $new->remove;
    return "engine $pid";
});

point('the other guest has computed all the time', sub {
    my $seen = keeps_computing($other, 1);
    return $seen . '; ' . VGPU::Compute::stop_right($red, $other);
});

done_testing();
