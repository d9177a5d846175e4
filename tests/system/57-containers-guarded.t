#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# Slices of a GPU for untrusted containers, with the guarded door: podman's containers compute through a socket without
# a node, and are held to their slice from outside.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use JSON::PP;
use VGPU::Compute;
use VGPU::Host;
use VGPU::Podman;
use VGPU::Remains;
use VGPU::Slice;
use VGPU::Test;

my ($red, $blue) = baseline();
my $free = VGPU::Host::ledger();
my $gpu = VGPU::Lab::gpu();
my $web = 'cd100000-0000-4000-8000-000000000001';
my $safe = 'cd100000-0000-4000-8000-000000000002';
my $spare = 'cd100000-0000-4000-8000-000000000003';
my $mib = 2**20;
my $storage = '/var/lib/containers';
my $before;

sub host { return VGPU::Lab::host(@_) }
sub ctl { return VGPU::Slice::ctl(@_) }
sub status { return VGPU::Slice::in_arbiter($gpu, @_) }
sub soon { return VGPU::Slice::soon(@_) }

sub guarded {
    my ($name, $id, $words) = @_;
    ctl("slice create --door guarded --name $name --uuid $id $words");
    return;
}

# The slice is free, and its guard holds none of its containers' memory.
sub given_back {
    my (@ids) = @_;
    soon(sub { !grep { VGPU::Slice::in_ledger($_)->{Container} ne '' } @ids }, 'it has it still');
    soon(sub { !grep { status($_)->{members} || status($_)->{vram_used} } @ids }, 'something is charged still');
    return;
}

sub without_guard {
    my ($name, $id) = @_;
    ctl("slice remove $name");
    soon(sub { host("systemctl is-active 'vgpu-guard\@$id.service'", fail => 1) !~ /^active/ }, 'its guard is there still');
    return VGPU::Remains::none($gpu, $before);
}

point('no node, and the same limits from outside', sub {
    VGPU::Slice::mount_image($storage);
    $before = VGPU::Remains::take($gpu);
    guarded('safe', $safe, '--vram 32M');
    my $seen = VGPU::Podman::look('safe');
    die encode_json($seen) if $seen->{heap} != 32 * $mib || $seen->{nodes} ne '';
    my $verdict = VGPU::Podman::computes('safe');
    # 40 MiB in five buffers; the client has nothing that it could leave out.
    die "it got 40 MiB\n" if VGPU::Podman::has_memory_for('safe', 2 * $mib, 'env VGPU_GOVERNOR_DISABLE=1');
    given_back($safe);
    return $verdict;
});

# podman and docker give such programs the container's own variables, and none of CDI's.
point('podman exec: a program without the variables finds the slice', sub {
    host(VGPU::Podman::words("exec-$$", 'safe') . "-d --rm --rootfs $VGPU::Slice::image:O sleep 600", timeout => 240);
    my $bare = "podman exec exec-$$ env -u VN_DEBUG -u VTEST_SOCKET_NAME";
    my $heap = VGPU::Slice::heap(host("$bare sh -c '$VGPU::Slice::vulkaninfo'", timeout => 240));
    my $without = host("$bare VGPU_GUARDED_DISABLE=1 sh -c '$VGPU::Slice::vulkaninfo'", fail => 1, timeout => 240);
    my $verdict = VGPU::Compute::verdict(host("$bare $VGPU::Slice::compute 2>&1", timeout => 240));
    host("podman rm -f -t 0 exec-$$", timeout => 120);
    die "a heap of $heap\n" if $heap != 32 * $mib;
    die "the same without the layer:\n$without" if $without =~ /Virtio-GPU Venus/;
    given_back($safe);
    return $verdict;
});

# The control: the slice is what limits it, not the client.
point('with a larger slice it has more', sub {
    ctl('slice set safe --vram 64M');
    soon(sub { status($safe)->{vram_limit} == 64 * $mib }, 'the arbiter has not heard');
    die "it did not get 40 MiB of 64\n" if !VGPU::Podman::has_memory_for('safe', 2 * $mib);
    ctl('slice set safe --vram 32M');
    return '';
});

point('a container that is killed leaves nothing behind', sub {
    my $idle = VGPU::Remains::take($gpu);
    VGPU::Podman::computing('safe1', $safe, 'safe');
    my $there = VGPU::Remains::take($gpu);
    die 'nothing of it is seen: ' . VGPU::Remains::describe($there) if !VGPU::Remains::is_more($there, $idle);
    VGPU::Podman::killed('safe1');
    given_back($safe);
    return VGPU::Remains::describe($there) . VGPU::Remains::none($gpu, $idle) . without_guard('safe', $safe);
});

# MiB that t-hoard held at once.
sub hoarded {
    my $said = VGPU::Podman::in_container('safe', "sh -c 'VK_LOADER_DRIVERS_SELECT=virtio* /opt/t-hoard --most 256'");
    my ($had) = $said =~ /^hoarded (\d+) MiB$/m;
    die $said if !$had || $said !~ /^again $had MiB$/m;
    return $had;
}

# A child has a mapping of each allocation that its program frees: the memory stays as long as that.
point('memory that a program has freed, and keeps all the same, stays charged', sub {
    guarded('safe', $safe, '--vram 32M');
    my $small = hoarded();
    given_back($safe);
    ctl('slice set safe --vram 72M');
    soon(sub { status($safe)->{vram_limit} == 72 * $mib }, 'the arbiter has not heard');
    my $large = hoarded();
    given_back($safe);
    die "$small MiB of 32, $large of 72\n" if $small > 32 || $large > 72 || $large <= 32;
    return "$small MiB of 32, $large of 72\n" . without_guard('safe', $safe);
});

point('shared memory that its clients keep after they have left is given back', sub {
    guarded('safe', $safe, '--vram 32M');
    my $said = VGPU::Podman::in_container('safe', 'sh -c \'VTEST_SOCKET_NAME=/run/vgpu/vtest/safe.sock /opt/t-hoard --shared 512\'');
    die $said if $said !~ /^shared 512 MiB, left 0 MiB$/m;
    given_back($safe);
    return $said . without_guard('safe', $safe);
});

# Mesa's default socket is that of the device that was named last.
point('two slices in one container, and one of the door native: each is chosen by its socket', sub {
    ctl("slice create --vram 64M --door native --name web --uuid $web");
    guarded('safe', $safe, '--vram 32M');
    guarded('spare', $spare, '--vram 24M');
    my $both = [qw(safe spare)];
    my $there = VGPU::Podman::in_container($both, 'ls /run/vgpu/vtest');
    die $there if join(' ', sort split ' ', $there) ne 'safe.sock spare.sock';
    my %heap = (last => VGPU::Podman::heap($both), safe => VGPU::Podman::heap($both, 'VTEST_SOCKET_NAME=/run/vgpu/vtest/safe.sock'),
        native => VGPU::Podman::heap([qw(web safe)], 'VN_DEBUG='), guarded => VGPU::Podman::heap([qw(web safe)]));
    my $said = encode_json(\%heap);
    die "$said\n" if $heap{last} != 24 * $mib || $heap{safe} != 32 * $mib || $heap{native} != 64 * $mib || $heap{guarded} != 32 * $mib;
    $said .= VGPU::Podman::computes($both);
    VGPU::Podman::computing('both', $spare, @$both);
    die encode_json(status($safe)) if status($safe)->{vram_limit} != 32 * $mib || status($spare)->{vram_limit} != 24 * $mib;
    VGPU::Podman::killed('both');
    given_back($safe, $spare);
    ctl("slice remove $_") for qw(spare safe web);
    return $said;
});

point('a slice is held to its engines from outside', sub {
    guarded('safe', $safe, '--vram 32M --engines compute,transfer');
    my $flags = VGPU::Podman::look('safe')->{queues};
    die "$flags\n" if $flags =~ /GRAPHICS/ || $flags !~ /COMPUTE/;
    my $verdict = VGPU::Podman::computes('safe');
    return "$flags\n$verdict\n" . without_guard('safe', $safe);
});

point('nothing is left', sub {
    VGPU::Slice::unmount_image($storage);
    VGPU::Slice::must_have_gone($gpu, $web, $safe, $spare);
    my $said = VGPU::Remains::none($gpu, $before);
    VGPU::Host::must_be_sane($free, $red->{vgpu}, $blue->{vgpu});
    return $said . computes($red) . computes($blue);
});

done_testing();
