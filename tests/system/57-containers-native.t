#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# Slices of a GPU for containers, with the native door: a stock Debian with Mesa, the guests' own tree, computes in
# podman with CDI's settings; it has its slice of the GPU and no other node. Two VMs run beside it.
# 57-containers-claims.t tests claims.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use JSON::PP;
use VGPU::Host;
use VGPU::Load;
use VGPU::Podman;
use VGPU::Remains;
use VGPU::Slice;
use VGPU::Test;

my ($red, $blue) = baseline();
my $free = VGPU::Host::ledger();
my $gpu = VGPU::Lab::gpu();
my $kind = $VGPU::Slice::kind;
my $web = 'cd100000-0000-4000-8000-000000000001';
my $other = 'cd100000-0000-4000-8000-000000000002';
my $mib = 2**20;
my $image = $VGPU::Slice::image;
my $compute = $VGPU::Slice::compute;
my $storage = '/var/lib/containers';
my $before;

sub host { return VGPU::Lab::host(@_) }
sub ctl { return VGPU::Slice::ctl(@_) }
sub status { return VGPU::Slice::in_arbiter($gpu, @_) }
sub soon { return VGPU::Slice::soon(@_) }
sub given_back { my ($id) = @_; return soon(sub { VGPU::Slice::in_ledger($id)->{Container} eq '' }, 'it has it still') }

point('the image: the tree of the guests, unchanged', sub {
    VGPU::Slice::mount_image($storage);
    my $ours = host("find $image/ -xdev -iname '*vgpu*' -not -path '*/proc/*' | head", fail => 1);
    die "there is something of ours in it:\n$ours" if $ours =~ /governor/;
    $before = VGPU::Remains::take($gpu);
    return host("cat $image/etc/debian_version; ls $image/usr/share/vulkan/icd.d") . VGPU::Remains::describe($before);
});

point('a slice is made, and is a device of CDI', sub {
    my $said = ctl("slice create --vram 32M --door native --name web --uuid $web");
    my $devices = ctl('cdi list');
    die $devices if $devices !~ /^$kind=web$/m;
    my $spec = decode_json(host('cat /var/run/cdi/mdev-vgpu.json'));
    die encode_json($spec) if $spec->{kind} ne $kind;
    soon(sub { status($web) }, 'the arbiter does not know it');
    die "vram_limit\n" if status($web)->{vram_limit} != 32 * $mib;
    return $said . host("ls -la /run/vgpu/containers/$web/slice/");
});

point('podman as root: a container computes, and nothing of it is left', sub {
    my $verdict = VGPU::Podman::computes('web');
    given_back($web);
    return "$verdict\n" . VGPU::Remains::none($gpu, $before);
});

point('it sees its slice as its GPU, and of the host\'s nodes the one that was given', sub {
    my $seen = VGPU::Podman::look('web');
    my $said = encode_json($seen);
    die "$said\n" if $seen->{heap} != 32 * $mib || $seen->{nodes} !~ m{^/dev/dri/renderD\d+$};
    die "$said\n" if $seen->{queues} !~ /GRAPHICS/ || $seen->{queues} !~ /COMPUTE/;
    my $without = host("podman run --rm --network none --rootfs $image:O find /dev -name 'render*'", timeout => 120);
    die "without a device it has $without" if $without =~ /render/;
    return $said;
});

# podman and docker give such programs the container's own variables, and none of CDI's.
point('podman exec: a program without the variables has the slice, or nothing', sub {
    host(VGPU::Podman::words("exec-$$", 'web') . "-d --rm --rootfs $image:O sleep 600", timeout => 240);
    my $env = host("podman exec exec-$$ env", timeout => 120);
    my $seen = VGPU::Slice::heap(host("podman exec exec-$$ $VGPU::Slice::vulkaninfo", timeout => 240));
    my $bare = VGPU::Slice::heap(host("podman exec exec-$$ env -u VGPU_GOVERNOR -u VGPU_GOVERNOR_REQUIRED "
        . "-u VGPU_GOVERNOR_SLICES sh -c '$VGPU::Slice::vulkaninfo'", timeout => 240));
    die "$env\n$seen, $bare\n" if $seen != 32 * $mib || $bare != 32 * $mib;
    host("podman rm -f -t 0 exec-$$", timeout => 120);
    given_back($web);
    return $env;
});

# 40 MiB in five buffers.
point('it cannot have more than its slice; without the governor it could', sub {
    die "it got it\n" if VGPU::Podman::has_memory_for('web', 2 * $mib);
    die "it would not get it without the governor\n" if !VGPU::Podman::has_memory_for('web', 2 * $mib, 'env VGPU_GOVERNOR_DISABLE=1');
    return '';
});

point('a slice without the graphics engine: none is offered, and it computes', sub {
    ctl('slice set web --engines compute,transfer');
    my $some = VGPU::Podman::look('web')->{queues};
    die "of some: $some\n" if $some =~ /GRAPHICS/ || $some !~ /COMPUTE/;
    my $verdict = VGPU::Podman::computes('web');
    ctl('slice set web --engines decode');
    my $none = VGPU::Podman::in_container('web', $compute, fail => 1);
    die "it computes without an engine for it:\n$none" if !$VGPU::Command::status;
    VGPU::Slice::refused('vgpuctl slice set web --engines graphics', qr/without compute/);
    ctl('slice set web --engines all');
    return "$some\n$none$verdict";
});

# Its part of the GPU's time is its finished work of known length; before the cap it does more than the cap allows.
point('a slice is changed while its container computes: it does less, and sees less', sub {
    my $batch_ms = 100;
    VGPU::Load::install();
    my $iterations = VGPU::Load::iterations($batch_ms);
    my $job = VGPU::Lab::host_job(VGPU::Podman::words('load', 'web')
            . "--rm --rootfs $image:O /opt/" . VGPU::Load::command('web', $iterations, 26));
    soon(sub { status($web)->{members} }, 'it does not compute');
    sleep 9;
    ctl('slice set web --cap 10 --vram 24M');
    soon(sub { status($web)->{vram_limit} == 24 * $mib }, 'the arbiter has not heard');
    my $ends = VGPU::Load::ends(120, web => $job);
    my ($free, $capped) = map { VGPU::Load::count($ends, @$_)->{web} * $batch_ms / 1000 / ($_->[1] - $_->[0]) } [1, 6], [15, 25];
    my ($heap, $queues) = @{ VGPU::Podman::look('web') }{qw(heap queues)};
    die "not all engines are offered again: $queues\n" if $queues !~ /GRAPHICS/;
    my $said = sprintf "%.2f of the GPU's time, then %.2f; a heap of %d MiB\n", $free, $capped, $heap / $mib;
    die $said if $free < 0.2 || $capped > 0.2 || !$capped || $heap != 24 * $mib;
    ctl('slice set web --cap 100 --vram 32M');
    return $said;
});

# As the guide has it. Its start is what starts vgpud.
point('a quadlet unit has its slice, with each start of its own', sub {
    host('mkdir -p /etc/containers/systemd && cat >/etc/containers/systemd/infer.container', stdin => <<"END");
[Unit]
After=vgpud.service
Wants=vgpud.service
[Quadlet]
DefaultDependencies=false
[Container]
Rootfs=$image:O
AddDevice=$kind=web
Volume=$VGPU::Slice::programs:/opt:ro
Network=none
LogDriver=none
Exec=$compute --forever
[Service]
Restart=always
RestartSec=1
TimeoutStartSec=240
END
    host('systemctl daemon-reload; systemctl stop vgpud; systemctl start infer', timeout => 300);
    soon(sub { status($web)->{members} }, 'it does not compute');
    my $first = VGPU::Slice::in_ledger($web)->{Container};
    host('podman kill -s KILL systemd-infer', timeout => 120);
    soon(sub { VGPU::Slice::in_ledger($web)->{Container} !~ /^(?:|\Q$first\E)$/ && status($web)->{members} }, 'it does not compute again');
    my $said = ctl('slice list');
    host('systemctl stop infer; rm -r /etc/containers/systemd; systemctl daemon-reload', timeout => 120);
    given_back($web);
    return $said;
});

point('an ephemeral slice goes with its container', sub {
    ctl("slice create --vram 32M --door native --ephemeral --uuid $other");
    my $verdict = VGPU::Podman::computes($other);
    soon(sub { !VGPU::Slice::in_ledger($other) }, 'it is there still');
    my $devices = ctl('cdi list');
    die "it is a device still:\n$devices" if $devices =~ /$other/;
    return "$verdict\n$devices";
});

point('a vGPU\'s VFIO group is given by the door vfio', sub {
    ctl("slice create sixteenth --door vfio --name vm --uuid $other");
    my $group = host("basename \$(readlink /sys/bus/mdev/devices/$other/iommu_group)");
    chomp $group;
    my $found = VGPU::Podman::in_container('vm', 'find /dev -path "/dev/vfio/*" -o -name "render*"');
    die $found if $found !~ m{^/dev/vfio/vfio$}m || $found !~ m{^/dev/vfio/$group$}m || $found =~ /render/;
    ctl('slice remove vm');
    return $found;
});

point('after a new start of vgpud all is there; and then nothing is left', sub {
    host('systemctl restart vgpud');
    my $seen = ctl('slice list') . VGPU::Podman::computes('web') . "\n";
    given_back($web);
    ctl('slice remove web');
    VGPU::Slice::unmount_image($storage);
    VGPU::Slice::must_have_gone($gpu, $web, $other);
    $seen .= VGPU::Remains::none($gpu, $before);
    VGPU::Host::must_be_sane($free, $red->{vgpu}, $blue->{vgpu});
    return $seen . computes($red) . computes($blue);
});

done_testing();
