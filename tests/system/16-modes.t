#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# The modes of a GPU: each there and back with VMs on it, refused with a list of users, drained, by the clock, and
# interrupted by kill -9. A user of the GPU always keeps it.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use VGPU::Host;
use VGPU::Test;
use VGPU::Whole;

my ($red, $blue) = baseline();
my @vgpus = map { $_->{vgpu} } $red, $blue;
my $gpu = VGPU::Lab::gpu();
# vgpuctl's exit statuses.
my ($not_authorized, $in_use) = (5, 6);

sub driver {
    my $name = VGPU::Lab::host("basename \$(readlink -f /sys/bus/pci/devices/$gpu/driver)");
    chomp $name;
    return $name;
}

sub detach_both { $_->detach($_->{vgpu}) for $red, $blue; return }

# The GPU is shared, its vGPUs have come back, and both guests compute.
sub both_compute {
    VGPU::Whole::until_mode($gpu, 'shared');
    for my $tenant ($red, $blue) {
        VGPU::Lab::host("timeout 60 sh -c 'until [ -e /dev/vgpu/$tenant->{vgpu}{uuid} ]; do sleep 0.3; done'", timeout => 80);
        $tenant->{vgpu}->wait_engine;
        $tenant->attach($tenant->{vgpu});
    }
    return join "\n", map { computes($_) } $red, $blue;
}

point('passthrough is refused while VMs have vGPUs, which are named; they compute on', sub {
    my $job = VGPU::Compute::vulkan($red, $red->gpu_of($red->{vgpu}), '--forever');
    $job->expect(qr/^OK round 1:/m, 120);
    my $said = VGPU::Whole::mode("$gpu passthrough", status => $in_use);
    for my $tenant ($red, $blue) {
        die $said if $said !~ /VM $tenant->{name} \(process \d+, qemu\S*\) has vGPU $tenant->{vgpu}{uuid} \(running\)/;
    }
    my $users = VGPU::Lab::host("vgpuctl gpu users $gpu");
    die $users if $users !~ /VM red .*VM blue/s || $users =~ /vgpu-engine/;
    keeps_computing($job, 2);
    VGPU::Compute::stop_right($red, $job);
    return $said . VGPU::Whole::mode("--dry-run $gpu passthrough");
});

point('an unprivileged user is refused each change of a GPU', sub {
    my $nobody = 'setpriv --reuid 65534 --regid 65534 --clear-groups vgpuctl';
    my $said = '';
    for my $command ("gpu mode $gpu host", "gpu drain $gpu", "gpu resume $gpu", "gpu users $gpu", 'schedule list') {
        $said .= VGPU::Lab::host("$nobody $command 2>&1", fail => 1);
        die "$command: status $VGPU::Command::status\n$said" if $VGPU::Command::status != $not_authorized;
    }
    VGPU::Whole::until_mode($gpu, 'shared', 1);
    return $said;
});

point('drained by the operator: no new vGPU whoever asks, no VM opens one, and those that have one compute', sub {
    my $uuid = 'c0ffee00-0000-4000-8000-00000000000d';
    VGPU::Lab::host("vgpuctl gpu drain $gpu");
    my $said = VGPU::Lab::host("echo $uuid >/sys/bus/pci/devices/$gpu/mdev_supported_types/*-vgpu-sixteenth/create", fail => 1);
    die "it was made\n" if !$VGPU::Command::status;
    my $seen = computes($red);
    $blue->detach($blue->{vgpu});
    VGPU::Lab::host("virsh attach-device blue /dev/stdin --live", fail => 1,
        stdin => VGPU::Tenant::hostdev_xml($blue->{vgpu}{uuid}), timeout => 120);
    die "blue got its vGPU\n" if !$VGPU::Command::status;
    my $kernel = VGPU::Lab::host('dmesg | grep -i drained | tail -n 2');
    VGPU::Lab::host("vgpuctl gpu resume $gpu");
    $blue->attach($blue->{vgpu});
    return "$said$kernel$seen; " . computes($blue);
});

point('--drain gives up when its time is over, and all is as before', sub {
    my $said = VGPU::Whole::mode("--drain --timeout 5 $gpu passthrough", status => $in_use);
    die $said if $said !~ /waits until it is no longer in use/ || $said !~ /the timeout is over/;
    my $seen = VGPU::Whole::show($gpu);
    die "it is $seen->{Mode}, wanted $seen->{WantedMode}, draining $seen->{Draining}\n"
        if $seen->{Mode} ne 'shared' || $seen->{WantedMode} ne 'shared' || $seen->{Draining};
    return computes($red) . "\n" . computes($blue);
});

point('--drain waits until both VMs have let go, then the GPU is at vfio-pci', sub {
    my $job = VGPU::Lab::host_job("vgpuctl gpu mode --drain $gpu passthrough 2>&1");
    $job->expect(qr/waits until it is no longer in use/, 60);
    my $second = VGPU::Whole::mode("$gpu host", status => $in_use);
    die $second if $second !~ /is being switched to passthrough just now/;
    $red->detach($red->{vgpu});
    die "it did not wait for blue\n" . $job->output if !$job->running;
    computes($blue);
    $blue->detach($blue->{vgpu});
    my $said = $job->wait(90);
    die 'it is at ' . driver() . "\n$said" if driver() ne 'vfio-pci';
    return $said;
});

point('red has the whole GPU, and computes', sub {
    my @before = $red->gpus;
    VGPU::Whole::plug($red, $gpu, 'no');
    my ($address) = $red->wait_gpus(@before);
    my $job = VGPU::Compute::vulkan($red, $address);
    return "$address: " . VGPU::Compute::verdict($job->wait(180));
});

point('a GPU that VM red has is not taken from it', sub {
    my $said = VGPU::Whole::mode("$gpu shared", status => $in_use);
    die $said if $said !~ m{VM red .* has /dev/vfio/};
    die "it is at " . driver() . "\n" if driver() ne 'vfio-pci';
    return $said;
});

point('back to shared: the vGPUs come back, and both guests compute', sub {
    VGPU::Whole::unplug($red, $gpu, 'no');
    my $said = VGPU::Whole::mode("$gpu shared");
    die $said if $said !~ /vGPU $red->{vgpu}{uuid} is started again/;
    return $said . both_compute();
});

point('host and back', sub {
    detach_both();
    my $said = VGPU::Whole::mode("$gpu host");
    VGPU::Lab::host("test ! -e /sys/bus/pci/devices/$gpu/mdev_supported_types && test -e /dev/dri/renderD128");
    $said .= VGPU::Whole::mode("$gpu shared");
    return $said . both_compute();
});

point('a vGPU without a definition is in the way: it would be lost', sub {
    my $uuid = 'c0ffee00-0000-4000-8000-00000000000e';
    detach_both();
    VGPU::Lab::host("mdevctl start -u $uuid -p $gpu -t \$(basename /sys/bus/pci/devices/$gpu/mdev_supported_types/*-vgpu-sixteenth)");
    my $said = VGPU::Whole::mode("$gpu host", status => $in_use);
    die $said if $said !~ /vGPU $uuid has no definition/;
    VGPU::Lab::host("mdevctl stop -u $uuid");
    return $said;
});

point('kill -9 of vgpud during switches: each is finished or undone', sub {
    my @seen;
    for my $round (1 .. 6) {
        my $target = VGPU::Whole::show($gpu)->{Mode} eq 'shared' ? 'passthrough' : 'shared';
        my $job = VGPU::Lab::host_job("vgpuctl gpu mode $gpu $target 2>&1");
        $job->expect(qr/./, 30) if $round % 2;
        sleep(0.25 * ($round - 1));
        VGPU::Host::kill_vgpud();
        $job->wait(60, fail => 1);
        my ($now, $end) = (undef, time + 60);
        do { sleep 0.5; $now = VGPU::Whole::show($gpu) } while $now->{Switching} && time < $end;
        die "round $round: it is $now->{Mode}, and $now->{WantedMode} is wanted\n" . $job->output
            if $now->{Switching} || $now->{Mode} ne $now->{WantedMode} || $now->{Draining};
        die "round $round: $now->{Mode}, and the driver is " . driver() . "\n"
            if ($now->{Mode} eq 'passthrough') != (driver() eq 'vfio-pci');
        push @seen, "to $target: $now->{Mode}";
    }
    VGPU::Whole::mode("$gpu shared");
    return join("\n", @seen) . "\n" . both_compute();
});

sub schedule {
    my (@entries) = @_;
    my $text = join '', map { "[at $_->{name}]\ngpu=$gpu\nmode=$_->{mode}\nat=$_->{at}\nwarn=$_->{warn}\n" } @entries;
    VGPU::Lab::host('cat >/etc/vgpu/schedule.conf && vgpuctl reload', stdin => $text);
    return;
}

# A time of L1's clock, so many seconds from now, as systemd writes it.
sub in_seconds {
    my ($seconds) = @_;
    my $time = VGPU::Lab::host("date -d '+$seconds seconds' '+%F %T'");
    chomp $time;
    return $time;
}

# Waits until systemd has so many timers of this entry, and no others of the schedule. Returns its list.
sub until_timers {
    my ($count, $name) = @_;
    my $end = time + 30;
    my $seen;
    do {
        $seen = VGPU::Lab::host("systemctl list-units --all --plain --full --no-legend 'vgpu-schedule\@*.timer'");
        my $all = () = $seen =~ /\S\n/g;
        my $own = () = $seen =~ /^vgpu-schedule\@$name-[0-9a-f]{8}\.timer\s+loaded\s+active/mg;
        return $seen if $all == $count && $own == $count;
        sleep 0.5;
    } while (time < $end);
    die "there should be $count timers of '$name':\n$seen";
}

# Without vgpuctl, which would start vgpud.
sub wait_for_time {
    my ($time) = @_;
    VGPU::Lab::host("timeout 120 sh -c 'until [ \$(date +%s) -gt \$(date -d \"$time\" +%s) ]; do sleep 0.3; done'", timeout => 140);
    return;
}

point('by the clock: a timer of systemd\'s warns, drains and switches, and the audit has it', sub {
    my $events = VGPU::Lab::host_job('exec vgpuctl events');
    detach_both();
    my $at = in_seconds(60);
    my $clock = substr $at, 11, 5;
    schedule({ name => 'soon', mode => 'passthrough', at => $at, warn => '20s' });
    my $timers = until_timers(2, 'soon');
    my $listed = VGPU::Lab::host('vgpuctl schedule list');
    my $minute = substr $at, 0, 16;
    die $listed if $listed !~ /^soon\s+\Q$gpu\E\s+passthrough\s+-\s+\w+ \Q$minute\E /m;
    $events->expect(qr/becomes passthrough at $clock \(schedule soon\)/, 100);
    VGPU::Whole::until_mode($gpu, 'passthrough', 90);
    $events->stop;
    die 'the driver is ' . driver() . "\n" if driver() ne 'vfio-pci';
    my $audit = VGPU::Lab::host("vgpuctl audit --user schedule --object $gpu -n 1");
    die $audit if $audit !~ /schedule\s+switch\s+\Q$gpu\E\s+ok\s+Mode shared -> passthrough/;
    my $late = VGPU::Lab::host("expr \$(date +%s) - \$(date -d '$at' +%s)");
    return "$timers$listed$audit$late s after $at";
});

point('vgpud is stopped when an entry is due: the timer starts it', sub {
    my $at = in_seconds(30);
    schedule({ name => 'back', mode => 'shared', at => $at, warn => '0' });
    until_timers(1, 'back');
    VGPU::Lab::host('systemctl stop vgpud', timeout => 60);
    die "it was not stopped\n" if VGPU::Lab::host('systemctl is-active vgpud', fail => 1) !~ /inactive/;
    wait_for_time($at);
    VGPU::Lab::host("timeout 60 sh -c 'until systemctl is-active -q vgpud; do sleep 0.3; done'", timeout => 80);
    return both_compute();
});

point('of the entries that were missed, only the last one is executed', sub {
    detach_both();
    my ($first, $second) = (in_seconds(40), in_seconds(44));
    schedule({ name => 'one', mode => 'host', at => $first, warn => '0' },
        { name => 'two', mode => 'passthrough', at => $second, warn => '0' });
    VGPU::Host::without_vgpud(sub { wait_for_time($second) });
    VGPU::Whole::until_mode($gpu, 'passthrough', 90);
    my $audit = VGPU::Lab::host("vgpuctl audit --user schedule --object $gpu --since '$first'");
    die $audit if $audit =~ /-> host/ || $audit !~ /Mode shared -> passthrough/;
    return $audit;
});

point('a time that systemd does not understand is refused, and the doctor says so; without the file there is no timer', sub {
    VGPU::Lab::host("printf '[at x]\\ngpu=$gpu\\nmode=host\\nat=Funday 08:00\\n' >/etc/vgpu/schedule.conf");
    my $said = VGPU::Lab::host('vgpuctl reload 2>&1', fail => 1);
    die "status $VGPU::Command::status\n$said" if !$VGPU::Command::status || $said !~ /at=Funday 08:00 is not allowed/;
    my $doctor = VGPU::Lab::host('vgpuctl doctor', fail => 1, timeout => 120);
    die $doctor if $doctor !~ /at=Funday 08:00 is not allowed/;
    VGPU::Lab::host('rm /etc/vgpu/schedule.conf && vgpuctl reload');
    until_timers(0, '');
    VGPU::Whole::mode("$gpu shared");
    return $said . both_compute();
});

VGPU::Lab::host('rm -f /etc/vgpu/schedule.conf /var/lib/vgpu/gpus.conf');
done_testing();
