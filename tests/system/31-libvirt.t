#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# vGPUs by stock libvirt: node devices, VMs whose vGPUs are made and removed with them, virsh's messages for refusals,
# and vgpuctl attach and detach.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use JSON::PP;
use VGPU::Host;
use VGPU::Test;

my ($red, $blue) = baseline();
my $gpu = VGPU::Lab::gpu();
my ($driver) = $red->{vgpu}{type} =~ /^(.*)-vgpu-half$/;
my $uuid = 'b10e0000-0000-4000-8000-000000000001';
my $defined = 'b10e0000-0000-4000-8000-000000000002';
my $node = 'b10e0000-0000-4000-8000-000000000003';

sub host { return VGPU::Lab::host(@_) }
sub ctl { return host("vgpuctl $_[0]", timeout => 180) }
sub vgpu { my ($id) = @_; return (grep { $_->{Uuid} eq $id } @{ decode_json(ctl('-o json vgpu list')) })[0] }

# Runs it and expects it to fail with such words; returns them, and the duration.
sub refused {
    my ($command, $words) = @_;
    my $begin = time;
    my $text = host("$command 2>&1", fail => 1, timeout => 180);
    die "it did not fail:\n$text" if $VGPU::Command::status == 0;
    die "it says:\n$text" if $text !~ $words;
    return sprintf "%s(%.1f s)\n", $text, time - $begin;
}

sub soon {
    my ($code, $why) = @_;
    for (1 .. 100) {
        return 1 if $code->();
        sleep 0.2;
    }
    die "$why:\n" . ctl('vgpu list');
}

# blue without a vGPU, defined and not running.
sub blue_anew {
    $blue->destroy;
    host('virsh -q define /run/blue.xml');
    return;
}

# A node device's XML, in virsh's form.
sub nodedev {
    my ($weight) = @_;
    my $parent = 'pci_' . ($gpu =~ tr/:./__/r);
    return <<"XML";
<device>
  <parent>$parent</parent>
  <capability type='mdev'>
    <type id='$driver-vgpu-sixteenth'/>
    <uuid>$node</uuid>
    <attr name='vgpu/weight' value='$weight'/>
  </capability>
</device>
XML
}

# libvirt looks for hooks when it starts or reloads; VMs survive that, with the hook present.
point('libvirt is restarted and takes its VMs up again', sub {
    host('ls -l /etc/libvirt/hooks/qemu.d/50-vgpu; systemctl restart libvirtd', timeout => 120);
    soon(sub { $red->state eq 'running' && $blue->state eq 'running' }, 'not running');
    return computes($red);
});

point('virsh nodedev-list, -dumpxml: our types are there', sub {
    my $parent = 'pci_' . ($gpu =~ tr/:./__/r);
    my $list = host('virsh nodedev-list --cap mdev_types');
    die $list if $list !~ /^$parent$/m;
    my $xml = host("virsh nodedev-dumpxml $parent");
    die $xml if $xml !~ /<type id='$driver-vgpu-half'>/ || $xml !~ /<deviceAPI>vfio-pci</;
    return $list;
});

point('virsh nodedev-define, -start, -autostart, -update, -destroy, -undefine', sub {
    my ($name) = host('virsh nodedev-define /dev/stdin', stdin => nodedev(33)) =~ /'(mdev_\S+)'/;
    soon(sub { (vgpu($node) // { Device => '' })->{Device} eq 'stopped' }, 'vgpud does not know it');
    host("virsh nodedev-start $name && virsh nodedev-autostart $name", timeout => 120);
    soon(sub { my $seen = vgpu($node); $seen->{Device} eq 'closed' && $seen->{Weight} == 33 && $seen->{Autostart} },
        'it is not as it was defined');
    my $xml = host("virsh nodedev-dumpxml $name --inactive") =~ s/value='33'/value='44'/r;
    host("virsh nodedev-update $name /dev/stdin --config", stdin => $xml);
    my $inactive = host("virsh nodedev-dumpxml $name --inactive");
    die $inactive if $inactive !~ /name='vgpu\/weight' value='44'/;
    host("virsh nodedev-destroy $name && virsh nodedev-undefine $name", timeout => 120);
    soon(sub { !vgpu($node) }, 'vgpud has it still');
    return $inactive;
});

point('a prepared domain has its vGPU when it starts, and computes', sub {
    blue_anew();
    my $said = ctl("domain prepare blue --type sixteenth --uuid $uuid --weight 55");
    die "it is there before\n" if vgpu($uuid);
    host('virsh start blue', timeout => 180);
    my $seen = vgpu($uuid);
    die encode_json($seen) if $seen->{Domain} ne 'blue' || $seen->{Vm} ne 'blue' || $seen->{Weight} != 55;
    delete $blue->{boots};
    $blue->wait_up;
    VGPU::Compute::install($blue);
    $blue->find_gpu({ uuid => $uuid });
    my $job = VGPU::Compute::vulkan($blue, $blue->gpu_of({ uuid => $uuid }));
    return $said . VGPU::Compute::verdict($job->wait(120)) . ctl('vgpu list');
});

point('its QEMU is killed: the vGPU is given back, and others stay', sub {
    host('kill -9 $(cat /run/libvirt/qemu/blue.pid)');
    soon(sub { $blue->state eq 'shut off' }, 'libvirt does not know that it is dead');
    VGPU::Lab::hang_up('blue');
    soon(sub { !vgpu($uuid) }, 'it is there still');
    die "blue's own is gone\n" if !vgpu($blue->{vgpu}{uuid});
    return ctl('vgpu list');
});

point('virsh start says why not: vgpud is down, stopped, has no room', sub {
    my $said = VGPU::Host::without_vgpud(sub {
        return refused('virsh start blue', qr/Hook script.*cannot start domain blue: cannot make vGPU $uuid.*vgpud can't be reached/s);
    });
    host('systemctl kill -s STOP vgpud');
    $said .= refused('virsh start blue', qr/vgpud can't be reached \(Timeout/);
    host('systemctl kill -s CONT vgpud');
    my $hog = ctl('-o json vgpu create eighth -n 2');
    $said .= refused('virsh start blue', qr/are free/);
    ctl("vgpu remove $_->{Uuid}") for @{ decode_json($hog) };
    die "it is there\n" if vgpu($uuid);
    return $said;
});

point('a defined vGPU is started for the VM that names it, and stays when that ends', sub {
    blue_anew();
    host("mdevctl define -u $defined -p $gpu -t $driver-vgpu-sixteenth");
    soon(sub { vgpu($defined) }, 'vgpud does not know it');
    host('virsh attach-device blue /dev/stdin --config', stdin => VGPU::Tenant::hostdev_xml($defined));
    host('virsh start blue', timeout => 180);
    my $state = vgpu($defined);
    die encode_json($state) if $state->{Engine} ne 'ready' || $state->{Vm} ne 'blue';
    blue_anew();
    soon(sub { (vgpu($defined) // { Device => '' })->{Device} eq 'closed' }, 'it is gone, or open');
    return ctl('vgpu list');
});

point('without vgpud a VM whose vGPU is there starts, and libvirt restarts', sub {
    host('virsh attach-device blue /dev/stdin --config', stdin => VGPU::Tenant::hostdev_xml($defined));
    my $took = VGPU::Host::without_vgpud(sub {
        my $begin = time;
        host('virsh start blue', timeout => 180);
        my $end = time;
        host('systemctl restart libvirtd', timeout => 120);
        die "red is " . $red->state . "\n" if $red->state ne 'running';
        die "blue is " . $blue->state . "\n" if $blue->state ne 'running';
        blue_anew();
        return $end - $begin;
    });
    host("mdevctl stop -u $defined; mdevctl undefine -u $defined");
    return sprintf('virsh start: %.1f s; ', $took) . computes($red);
});

point('vgpuctl attach and detach: all in one step', sub {
    my $known = join ' ', $red->gpus;
    my $said = ctl("attach red --type sixteenth --uuid $uuid --weight 9");
    die "of the other vGPU it says nothing:\n$said" if $said !~ /has other vGPUs, too \(1\)/;
    my ($new) = $red->wait_gpus(split ' ', $known);
    my $seen = vgpu($uuid);
    die encode_json($seen) if $seen->{Vm} ne 'red' || $seen->{Domain} ne 'red' || $seen->{Weight} != 9;
    my $job = VGPU::Compute::vulkan($red, $new);
    $said .= VGPU::Compute::verdict($job->wait(120)) . ctl("detach red $uuid");
    die "it is there still\n" if vgpu($uuid);
    return $said;
});

point('virsh attach-device as ever: vgpud knows which VM has it', sub {
    die ctl('vgpu list') if vgpu($red->{vgpu}{uuid})->{Vm} ne 'red';
    VGPU::Tenant::start($blue);
    delete $blue->{boots};
    $blue->wait_up;
    VGPU::Compute::install($blue);
    $blue->attach($blue->{vgpu});
    die ctl('vgpu list') if vgpu($blue->{vgpu}{uuid})->{Vm} ne 'blue';
    return computes($red) . computes($blue);
});

done_testing();
