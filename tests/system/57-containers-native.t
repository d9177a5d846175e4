#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# Slices of a GPU for containers: a stock Debian with Mesa, the guests' own tree, computes in podman with what CDI says,
# as root and as a user; it has its slice of the GPU and no other node, or several, and gives all back when it is killed. Two
# VMs compute beside it.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use JSON::PP;
use VGPU::Host;
use VGPU::Slice;
use VGPU::Test;

my ($red, $blue) = baseline();
my $free = VGPU::Host::ledger();
my $gpu = VGPU::Lab::gpu();
my $governor = "/run/vgpu/governor/$gpu";
my $kind = $VGPU::Slice::kind;
my $web = 'cd100000-0000-4000-8000-000000000001';
my $db = 'cd100000-0000-4000-8000-000000000002';
my $mib = 2**20;
my $image = $VGPU::Slice::image;
my $storage = '/var/lib/containers';
my $user = 'vgputest';

sub host { return VGPU::Lab::host(@_) }
sub ctl { return VGPU::Slice::ctl(@_) }
sub slice { return VGPU::Slice::in_ledger(@_) }
sub status { return VGPU::Slice::in_arbiter($gpu, @_) }
sub refused { return VGPU::Slice::refused(@_) }
sub soon { return VGPU::Slice::soon(@_) }

# podman's words for a container that has these devices.
sub podman_run {
    my ($name, @devices) = @_;
    return "podman run --name $name --network none --log-driver none " . join(' ', map { "--device $kind=$_" } @devices)
        . " -v $VGPU::Slice::programs:/opt:ro ";
}

my $compute = $VGPU::Slice::compute;
my $vulkaninfo = $VGPU::Slice::vulkaninfo;

# A command in a new container of root's, to its end. $device: one, or a list.
sub in_container {
    my ($device, $command, %opt) = @_;
    return host(podman_run("once-$$", ref $device ? @$device : $device) . "--rm --rootfs $image:O $command 2>&1", timeout => 240, %opt);
}

# What Vulkan says the GPU's memory is there. $before: of the command, as "env A=b".
sub heap_in {
    my ($device, $before) = @_;
    return VGPU::Slice::heap(in_container($device, "sh -c '" . ($before // '') . " $vulkaninfo'"));
}

# The queues' flags there, of all families.
sub queues_in {
    my ($device) = @_;
    my $text = in_container($device, "sh -c '$vulkaninfo'");
    my @flags = $text =~ /queueFlags\s+=\s+(.*)/g;
    die "no queues:\n$text" if !@flags;
    return "@flags";
}

# One that stays, computing, with the first of the devices.
sub computing {
    my ($name, @devices) = @_;
    host(podman_run($name, @devices) . "-d --rootfs $image:O $compute --forever", timeout => 120);
    soon(sub { (status($devices[0]) // {})->{members} }, "$name does not compute");
    return;
}

# As the user of the tenant, without the host's rights.
sub as_user {
    my ($command, %opt) = @_;
    my $home = "/home/$user";
    return host("cd $home && setpriv --reuid $user --regid $user --init-groups env -i HOME=$home USER=$user PATH=/usr/bin:/bin:/usr/sbin:/sbin "
        . "XDG_RUNTIME_DIR=$home/run bash -c '$command'", timeout => 600, %opt);
}

point('the image: the tree of the guests, unchanged', sub {
    VGPU::Slice::mount_image($storage);
    my $ours = host("find $image/ -xdev -iname '*vgpu*' -not -path '*/proc/*' | head", fail => 1);
    die "there is something of ours in it:\n$ours" if $ours =~ /governor/;
    return host("cat $image/etc/debian_version; ls $image/usr/share/vulkan/icd.d");
});

point('a slice is made, and is a device of CDI', sub {
    my $said = ctl("slice create --vram 64M --door native --name web --uuid $web");
    my $devices = ctl('cdi list');
    die $devices if $devices !~ /^$kind=web$/m;
    my $spec = decode_json(host('cat /var/run/cdi/mdev-vgpu.json'));
    die encode_json($spec) if $spec->{kind} ne $kind;
    soon(sub { status($web) }, 'the arbiter does not know it');
    die "vram_limit\n" if status($web)->{vram_limit} != 64 * $mib;
    return $said . host("ls -la /run/vgpu/containers/$web/slice/");
});

point('podman as root: a container computes, and has the slice meanwhile', sub {
    my $said = in_container('web', $compute);
    my $verdict = VGPU::Compute::verdict($said);
    soon(sub { slice($web)->{Container} eq '' && !status($web)->{members} }, 'it has it still');
    return $verdict;
});

point('it sees its slice as its GPU, and cannot have more', sub {
    my $heap = heap_in('web');
    die "heap of $heap bytes\n" if $heap != 64 * $mib;
    my $said = in_container('web', "$compute --size " . 16 * $mib, fail => 1);
    die "it got it: $said" if !$VGPU::Command::status || $said !~ /memory/i;
    return "heap $heap\n$said";
});

point('of the host\'s nodes it has the one that was given', sub {
    my $found = in_container('web', "find /dev -type c -o -type b");
    my @nodes = grep { !m{^/dev/(null|zero|full|random|urandom|tty|ptmx|pts/.*|console)$} } split ' ', $found;
    die "it has: @nodes\n" if "@nodes" !~ m{^/dev/dri/renderD\d+$};
    my $without = host("podman run --rm --network none --rootfs $image:O find /dev -name 'render*'", timeout => 120);
    die "without a device it has $without" if $without =~ /render/;
    return $found;
});

point('a slice is one container\'s; one that is killed gives everything back', sub {
    computing('web1', $web);
    soon(sub { slice($web)->{VramUsed} }, 'it uses no memory');
    my $seen = slice($web);
    die encode_json($seen) if $seen->{Container} !~ /^[0-9a-f]{12}/;
    my $said = ctl('slice list');
    $said .= refused(podman_run('web2', 'web') . "--rm --rootfs $image:O true", qr/hook/);
    my $log = host('journalctl -q --no-pager -t vgpu-container-hook -n 3');
    die "the log does not say why:\n$log" if $log !~ /container [0-9a-f]+ has it/;
    $said .= refused("vgpuctl slice remove web", qr/has slice $web/) . refused("vgpuctl gpu mode $gpu host", qr/has slice $web/);
    host('podman kill -s KILL web1 >/dev/null && podman rm -f web1 >/dev/null', timeout => 120);
    soon(sub { slice($web)->{Container} eq '' }, 'it has it still');
    my $left = status($web);
    die encode_json($left) if $left->{members} || $left->{vram_used};
    return $said . $log;
});

# podman can't remove a container whose conmon is gone: it stays in its list.
point('nobody tells that it has ended: vgpud sees it, when it is there again, too', sub {
    computing('lost', $web);
    my ($pid, $conmon) = split ' ', host(q(podman inspect -f '{{.State.Pid}} {{.State.ConmonPid}}' lost));
    host('systemctl stop vgpud');
    host("kill -9 $conmon $pid");
    host('systemctl start vgpud');
    soon(sub { slice($web)->{Container} eq '' && !status($web)->{members} }, 'it has it still');
    return ctl('slice list');
});

point('vgpud is stopped and the arbiter killed while it computes: it goes on, and its end is quick', sub {
    computing('web1', $web);
    my ($took, $said) = @{ VGPU::Host::without_vgpud(sub {
        host("systemctl kill -s KILL vgpu-arbiter\@$gpu.service");
        soon(sub { (status($web) // {})->{members} }, 'it is not back');
        my $begin = time;
        host('podman rm -f -t 0 web1 >/dev/null', timeout => 120);
        return [time - $begin, refused(podman_run('web2', 'web') . "--rm --rootfs $image:O true", qr/hook/)];
    }) };
    soon(sub { slice($web)->{Container} eq '' }, 'it has it still');
    return sprintf('the end took %.1f s; ', $took) . $said;
});

point('two containers, two slices: each its own', sub {
    ctl("slice create --vram 32M --door native --name db --uuid $db");
    computing('web1', $web);
    my $heap = heap_in('db');
    die "heap of $heap\n" if $heap != 32 * $mib;
    my $said = in_container('db', $compute) . ctl('slice list');
    my $used = status($db);
    die encode_json($used) if $used->{vram_used};
    host('podman rm -f -t 0 web1 >/dev/null', timeout => 120);
    soon(sub { slice($web)->{Container} eq '' }, 'it has it still');
    return $said;
});

# $web comes first, by UUID: it is both to the arbiter.
point('two slices of one GPU in one container: one share, as large as both, for as long as it is there', sub {
    my $heap = heap_in([qw(db web)]);
    die "heap of $heap\n" if $heap != 96 * $mib;
    soon(sub { status($db) && status($web)->{vram_limit} == 64 * $mib }, 'they are not apart again');
    computing('both', $web, $db);
    my $shown = ctl('slice list');
    die encode_json(slice($db)) if slice($db)->{CountedWith} ne $web || slice($db)->{Container} ne slice($web)->{Container};
    die encode_json(status($web)) if status($web)->{vram_limit} != 96 * $mib || status($db);
    my $said = refused('vgpuctl slice remove db', qr/has slice $db/);
    ctl('slice set db --vram 16M');
    soon(sub { status($web)->{vram_limit} == 80 * $mib }, 'a change of the second is not told');
    ctl('slice set db --vram 32M');
    host('podman kill -s KILL both >/dev/null && podman rm -f both >/dev/null', timeout => 120);
    soon(sub { !grep { slice($_)->{Container} ne '' } $web, $db }, 'it has them still');
    soon(sub { status($db) && status($web)->{vram_limit} == 64 * $mib }, 'they are not apart again');
    my $left = status($web);
    die encode_json($left) if $left->{members} || $left->{vram_used};
    return $shown . $said;
});

point('the second of two is refused: the container does not start, and the first is given back', sub {
    computing('db1', $db);
    my $said = refused(podman_run('both', 'web', 'db') . "--rm --rootfs $image:O true", qr/hook/);
    my $log = host('journalctl -q --no-pager -t vgpu-container-hook -n 3');
    die "the log does not say why:\n$log" if $log !~ /container [0-9a-f]+ has it/;
    soon(sub { slice($web)->{Container} eq '' }, 'it has it still');
    die encode_json(status($web)) if status($web)->{vram_limit} != 64 * $mib;
    die encode_json(slice($db)) if slice($db)->{Container} eq '' || !status($db)->{members};
    host('podman rm -f -t 0 db1 >/dev/null', timeout => 120);
    soon(sub { slice($db)->{Container} eq '' }, 'it has it still');
    return $said . $log;
});

point('a slice without the graphics engine: none is offered, and it computes', sub {
    my $all = queues_in('web');
    die "of all: $all\n" if $all !~ /GRAPHICS/ || $all !~ /COMPUTE/;
    ctl('slice set web --engines compute,transfer');
    my $some = queues_in('web');
    die "of some: $some\n" if $some =~ /GRAPHICS/ || $some !~ /COMPUTE/;
    my $verdict = VGPU::Compute::verdict(in_container('web', $compute));
    ctl('slice set web --engines decode');
    my $none = in_container('web', $compute, fail => 1);
    die "it computes without an engine for it:\n$none" if !$VGPU::Command::status;
    refused('vgpuctl slice set web --engines graphics', qr/without compute/);
    ctl('slice set web --engines all');
    my $again = queues_in('web');
    die "again: $again\n" if $again ne $all;
    return "$all\n$some\n$none$verdict";
});

point('a slice is changed while its container computes', sub {
    computing('web1', $web);
    ctl('slice set web --cap 10 --vram 48M');
    soon(sub { status($web)->{vram_limit} == 48 * $mib }, 'the arbiter has not heard');
    soon(sub { status($web)->{throttled_ns} }, 'its cap does not hold it');
    ctl('slice set web --cap 100 --vram 64M');
    host('podman rm -f -t 0 web1 >/dev/null', timeout => 120);
    return '';
});

point('an ephemeral slice goes with its container', sub {
    ctl('slice remove db');
    ctl("slice create --vram 32M --door native --ephemeral --uuid $db");
    my $said = VGPU::Compute::verdict(in_container($db, $compute));
    soon(sub { !slice($db) }, 'it is there still');
    return $said . ctl('cdi list');
});

point('a vGPU\'s VFIO group is given by the door vfio', sub {
    ctl("slice create sixteenth --door vfio --name vm --uuid $db");
    my $group = host("basename \$(readlink /sys/bus/mdev/devices/$db/iommu_group)");
    chomp $group;
    my $found = in_container('vm', 'find /dev -path "/dev/vfio/*" -o -name "render*"');
    die $found if $found !~ m{^/dev/vfio/vfio$}m || $found !~ m{^/dev/vfio/$group$}m || $found =~ /render/;
    ctl('slice remove vm');
    return $found;
});

# Its socket is there some moments after the slice.
sub guarded {
    my (@more) = @_;
    ctl("slice create --vram 32M --door guarded --name safe --uuid $db @more");
    host("timeout 60 sh -c 'until [ -S /run/vgpu/guard/$db/vtest.sock ]; do sleep 0.2; done'", timeout => 70);
    return;
}

point('the door guarded: no node, and the same limits from outside', sub {
    guarded();
    my $found = in_container('safe', 'find /dev -path "/dev/dri*"');
    die "it has $found" if $found =~ m{/dev/dri/};
    my $verdict = VGPU::Compute::verdict(in_container('safe', $compute));
    my $heap = heap_in('safe');
    die "heap of $heap\n" if $heap != 32 * $mib;
    my $said = in_container('safe', "$compute --size " . 8 * $mib, fail => 1);
    die "it got it: $said" if !$VGPU::Command::status;
    computing('safe1', $db);
    host('podman kill -s KILL safe1 >/dev/null && podman rm -f safe1 >/dev/null', timeout => 120);
    soon(sub { slice($db)->{Container} eq '' && !status($db)->{vram_used} }, 'it has it still');
    ctl('slice remove safe');
    soon(sub { host("systemctl is-active 'vgpu-guard\@$db.service'", fail => 1) !~ /^active/ }, 'its guard is there still');
    return $verdict;
});

# A child has a mapping of each allocation, which its program frees: the memory is there as long as that.
point('the door guarded: memory that a program has freed, and keeps all the same, stays charged', sub {
    guarded();
    my $said = in_container('safe', "sh -c 'VK_LOADER_DRIVERS_SELECT=virtio* /opt/t-hoard --most 256'");
    my ($had) = $said =~ /^hoarded (\d+) MiB$/m;
    die $said if !$had || $had > 32 || $said !~ /^again $had MiB$/m;
    soon(sub { !status($db)->{vram_used} && !status($db)->{members} }, 'something is charged still');
    ctl('slice remove safe');
    return $said;
});

# The socket that Mesa takes without being told is of the device that was named last.
point('two slices of the door guarded in one container, and one of the door native: each is chosen by its socket', sub {
    my $third = 'cd100000-0000-4000-8000-000000000003';
    guarded();
    ctl("slice create --vram 24M --door guarded --name spare --uuid $third");
    host("timeout 60 sh -c 'until [ -S /run/vgpu/guard/$third/vtest.sock ]; do sleep 0.2; done'", timeout => 70);
    my $both = [qw(safe spare)];
    my $there = in_container($both, 'ls /run/vgpu/vtest');
    die $there if join(' ', sort split ' ', $there) ne 'safe.sock spare.sock';
    my %heap = (last => heap_in($both), safe => heap_in($both, 'VTEST_SOCKET_NAME=/run/vgpu/vtest/safe.sock'),
        native => heap_in(['web', 'safe'], 'VN_DEBUG='), guarded => heap_in(['web', 'safe']));
    my $said = encode_json(\%heap);
    die "$said\n" if $heap{last} != 24 * $mib || $heap{safe} != 32 * $mib || $heap{native} != 64 * $mib || $heap{guarded} != 32 * $mib;
    $said .= VGPU::Compute::verdict(in_container($both, $compute));
    host(podman_run('both', @$both) . "-d --rootfs $image:O $compute --forever", timeout => 120);
    soon(sub { status($third)->{members} }, 'it does not compute');
    die encode_json(status($db)) if status($db)->{vram_limit} != 32 * $mib || status($third)->{vram_limit} != 24 * $mib;
    host('podman kill -s KILL both >/dev/null && podman rm -f both >/dev/null', timeout => 120);
    soon(sub { !grep { slice($_)->{Container} ne '' || status($_)->{vram_used} } $db, $third }, 'it has them still');
    ctl('slice remove spare');
    ctl('slice remove safe');
    return $said;
});

point('the door guarded holds a slice to its engines from outside', sub {
    guarded('--engines compute,transfer');
    my $flags = queues_in('safe');
    die "$flags\n" if $flags =~ /GRAPHICS/ || $flags !~ /COMPUTE/;
    my $verdict = VGPU::Compute::verdict(in_container('safe', $compute));
    ctl('slice remove safe');
    return "$flags\n$verdict";
});

point('a user\'s podman: the image', sub {
    host(<<"SH", timeout => 120);
set -e
id $user >/dev/null 2>&1 || useradd -m -s /bin/bash $user
usermod -aG render $user
mountpoint -q /home/$user || { mount -t tmpfs -o size=2G,mode=0700 tmpfs /home/$user; chown $user: /home/$user; }
grep -q ^$user: /etc/subuid
install -d -o $user -g $user -m 0700 /home/$user/run
SH
    host(VGPU::Slice::tar() . " | (cd /home/$user && setpriv --reuid $user --regid $user --init-groups "
        . "env -i HOME=/home/$user PATH=/usr/bin:/bin:/usr/sbin:/sbin XDG_RUNTIME_DIR=/home/$user/run podman import - debian-mesa) 2>&1",
        timeout => 900);
    return as_user('podman images');
});

sub rootless {
    my ($device, $command, %opt) = @_;
    return as_user("podman run --rm --network none --log-driver none --cgroups=disabled --group-add keep-groups --device $kind=$device "
        . "-v $VGPU::Slice::programs:/opt:ro localhost/debian-mesa $command 2>&1", %opt);
}

point('a user\'s podman computes with a slice of the user\'s tenant, and with no other', sub {
    my $said = rootless('web', 'true', fail => 1);
    die "a slice of nobody was given to a user:\n$said" if !$VGPU::Command::status;
    ctl("tenant set cont --user $user");
    ctl('slice set web --tenant cont');
    # The hook's question is then polkit's first.
    host('systemctl stop polkit');
    $said .= VGPU::Compute::verdict(rootless('web', $compute));
    my $heap = VGPU::Slice::heap(rootless('web', qq(sh -c "$vulkaninfo")));
    die "heap of $heap\n" if $heap != 64 * $mib;
    soon(sub { slice($web)->{Container} eq '' && !status($web)->{members} }, 'it has it still');
    return $said;
});

point('a user\'s podman computes through the door guarded, without the right to the node', sub {
    host("gpasswd -d $user render");
    guarded('--tenant cont');
    my $verdict = VGPU::Compute::verdict(rootless('safe', $compute));
    ctl('slice remove safe');
    return $verdict;
});

point('others can\'t reach its socket past podman', sub {
    my $path = "/run/vgpu/containers/$web/slice/governor.sock";
    host("runuser -u nobody -- test -S $path", fail => 1);
    die "nobody sees it\n" if !$VGPU::Command::status;
    host("runuser -u nobody -- ls /run/vgpu/slices", fail => 1);
    die "nobody sees the others\n" if !$VGPU::Command::status;
    return as_user("ls -l $path");
});

point('after a new start of vgpud all is there; and then nothing is left', sub {
    host('systemctl restart vgpud');
    my $seen = ctl('slice list') . in_container('web', $compute);
    soon(sub { slice($web)->{Container} eq '' }, 'it has it still');
    ctl('slice remove web');
    ctl('tenant remove cont');
    my $left = host("ls -d /run/vgpu/containers/* /run/vgpu/slices/$web $governor/slices/$web.conf /var/run/cdi/mdev-vgpu.json 2>/dev/null", fail => 1);
    die "left: $left" if $left =~ /\S/;
    host("umount /home/$user; userdel -r $user", fail => 1);
    VGPU::Slice::unmount_image($storage);
    VGPU::Host::must_be_sane($free, $red->{vgpu}, $blue->{vgpu});
    return $seen . computes($red) . computes($blue);
});

done_testing();
