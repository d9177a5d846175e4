#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# The kernel enforces a type's limits of processor time and memory: by the cgroup of each engine, while it runs, with
# the next engine, and with the next vgpud. Guests compute under them, and a removed vGPU leaves nothing of them behind.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use VGPU::Host;
use VGPU::Test;

my ($red, $blue) = baseline();
my $before = VGPU::Host::ledger();
my $uuid = 'c9400000-0000-4000-8000-000000000001';
my $types = '/etc/vgpu/types.d/10-default.conf';
my $own_memory = 4 * 2**30;

sub host { return VGPU::Lab::host(@_) }
sub unit { my ($id) = @_; return "vgpu-engine\@$id.service" }

# A file of the engine's cgroup; "" if its controller is not in use.
sub cgroup {
    my ($id, $file) = @_;
    my $text = host("cat \"/sys/fs/cgroup\$(systemctl show -P ControlGroup '" . unit($id) . "')/$file\" 2>/dev/null", fail => 1);
    chomp $text;
    return $text;
}

# Waits until the cgroup has these values, because systemd is told after the call.
sub holds {
    my ($id, %wanted) = @_;
    my $seen;
    for (1 .. 50) {
        my %now = map { $_ => cgroup($id, $_) } keys %wanted;
        $seen = join ', ', map { "$_ $now{$_}" } sort keys %now;
        return "$seen\n" if !grep { $now{$_} !~ $wanted{$_} } keys %wanted;
        sleep 0.2;
    }
    die "$id: $seen\n";
}

# The installed types, with these lines added to each.
sub types_with {
    my ($lines) = @_;
    host("mkdir -p /etc/vgpu/types.d; sed 's/^\\[type .*/&\\n$lines/' /usr/lib/vgpu/types.d/10-default.conf >$types; vgpuctl reload");
    return;
}

sub by_default {
    my ($id) = @_;
    my $vram = host("cat /sys/bus/mdev/devices/$id/vgpu/vram_bytes");
    my $memory = $vram + $own_memory;
    return ('cpu.max' => qr/^(max .*|)$/, 'memory.max' => qr/^$memory$/);
}

point('by default processors are not limited, and memory is', sub {
    host('systemctl start vgpud');
    return join '', map { holds($_->{vgpu}{uuid}, by_default($_->{vgpu}{uuid})) } $red, $blue;
});

my %limits = ('cpu.max' => qr/^150000 100000$/, 'memory.max' => qr/^3221225472$/);
my $job = VGPU::Compute::vulkan($blue, $blue->gpu_of($blue->{vgpu}), '--forever');
$job->expect(qr/^OK round 1:/m, 120);

point('a type is changed while its guests compute: they are held to it, and go on', sub {
    types_with('cpu=150%\\nmemory=3G');
    my $seen = join '', map { holds($_->{vgpu}{uuid}, %limits) } $red, $blue;
    return $seen . host("systemctl show -p CPUQuotaPerSecUSec -p MemoryMax $red->{vgpu}{unit}") . keeps_computing($job)
        . computes($red);
});

point('a file that is wrong changes nothing', sub {
    host("sed -i 's/^cpu=.*/cpu=much/' $types");
    my $said = host('vgpuctl reload 2>&1', fail => 1);
    die "it was taken: $said" if !$VGPU::Command::status || $said !~ /cpu=much is not allowed/;
    types_with('cpu=150%\\nmemory=3G');
    return $said . holds($red->{vgpu}{uuid}, %limits);
});

point('the weight of a vGPU is that of its engine, too', sub {
    my $id = $red->{vgpu}{uuid};
    my $before = $red->{vgpu}->attribute('weight');
    host("vgpuctl slice set $id --weight 123");
    my $seen = holds($id, 'cpu.weight' => qr/^123$/, %limits);
    host("vgpuctl slice set $id --weight $before");
    return $seen . holds($id, 'cpu.weight' => qr/^$before$/, %limits);
});

point('a new engine is held to the same, without vgpud as well', sub {
    host('systemctl stop vgpud');
    host("systemctl restart $red->{vgpu}{unit}", timeout => 120);
    $red->{vgpu}->wait_engine;
    my $seen = holds($red->{vgpu}{uuid}, %limits);
    host('systemctl start vgpud');
    $red->rebind($red->{vgpu});
    return $seen . computes($red);
});

point('a vGPU that comes is held to it, and leaves nothing behind when it goes', sub {
    my $dropins = "ls -d /run/systemd/system*/" . unit($uuid) . '.d 2>/dev/null';
    host("vgpuctl vgpu create sixteenth --uuid $uuid");
    host("timeout 90 sh -c 'until systemctl -q is-active " . unit($uuid) . "; do sleep 0.3; done'", timeout => 110);
    my $seen = holds($uuid, %limits) . host($dropins);
    my $group = host('systemctl show -P ControlGroup ' . unit($uuid));
    chomp $group;
    host("vgpuctl slice remove $uuid");
    for (1 .. 100) {
        my $left = host("$dropins; ls -d '/sys/fs/cgroup$group' 2>/dev/null; systemctl list-units --all --no-legend '" . unit($uuid) . "'", fail => 1);
        return $seen if $left !~ /\S/;
        die "there is still:\n$left" if $_ == 100;
        sleep 0.2;
    }
});

point('one that came while vgpud was stopped is held when vgpud comes', sub {
    my ($driver) = $red->{vgpu}{type} =~ /^(.*)-vgpu-half$/;
    host('systemctl stop vgpud');
    host("mdevctl start -u $uuid -p " . VGPU::Lab::gpu() . " -t $driver-vgpu-sixteenth");
    host("timeout 90 sh -c 'until systemctl -q is-active " . unit($uuid) . "; do sleep 0.3; done'", timeout => 110);
    host('systemctl start vgpud');
    my $seen = holds($uuid, %limits);
    host("mdevctl stop -u $uuid");
    return $seen;
});

point('the type says nothing any more: it is as by default, and the guest has computed all the time', sub {
    host("rm $types; vgpuctl reload");
    my $seen = join '', map { holds($_->{vgpu}{uuid}, by_default($_->{vgpu}{uuid})) } $red, $blue;
    $seen .= keeps_computing($job);
    $seen .= '; ' . VGPU::Compute::stop_right($blue, $job);
    VGPU::Host::must_be_sane($before, $red->{vgpu}, $blue->{vgpu});
    return $seen;
});

done_testing();
