# SPDX-License-Identifier: MIT
# podman's containers with slices, by CDI: the guests' own tree, run as root.
package VGPU::Podman;

use strict;
use warnings;

use VGPU::Command;
use VGPU::Compute;
use VGPU::Lab;
use VGPU::Slice;

my $image = $VGPU::Slice::image;

# podman's arguments for a container with these devices.
sub words {
    my ($name, @devices) = @_;
    return "podman run --name $name --network none --log-driver none "
        . join(' ', map { "--device $VGPU::Slice::kind=$_" } @devices) . " -v $VGPU::Slice::programs:/opt:ro ";
}

# The same, to its end, with a command that does nothing: for containers that must be refused.
sub idle { my (@devices) = @_; return words("idle-$$", @devices) . "--rm --rootfs $image:O true" }

# A command in a new container, to its end. $device: one, or a list.
sub in_container {
    my ($device, $command, %opt) = @_;
    my $words = words("once-$$", ref $device ? @$device : $device);
    return VGPU::Lab::host("$words --rm --rootfs $image:O $command 2>&1", timeout => 240, %opt);
}

# vk-compute in one: the verdict.
sub computes {
    my ($device) = @_;
    return VGPU::Compute::verdict(in_container($device, $VGPU::Slice::compute));
}

# True if it computes on this many elements for each of its five buffers; false if it is refused the memory. Mesa has to wait
# for the answer, or a refusal may abort the program (docs/upstream.md, 11).
sub has_memory_for {
    my ($device, $elements, $before) = @_;
    my $said = in_container($device, "env VN_PERF=no_async_mem_alloc " . ($before // '') . " $VGPU::Slice::compute --size $elements --iterations 1 --rounds 1", fail => 1);
    return 1 if !$VGPU::Command::status;
    die "it failed, and not for want of memory:\n$said" if $said !~ /memory/i;
    return 0;
}

# What a container sees: heap (in bytes), queues (flags of all families), nodes (devices of the host).
# $before: of vulkaninfo, such as "env A=b". A container starts slowly here, so one run collects all.
sub look {
    my ($device, $before) = @_;
    my $text = in_container($device, "sh -c '" . ($before // '') . " $VGPU::Slice::vulkaninfo; find /dev -type c -o -type b'");
    my @flags = $text =~ /queueFlags\s+=\s+(.*)/g;
    die "no queues:\n$text" if !@flags;
    my @nodes = grep { !m{/(null|zero|full|random|urandom|tty|ptmx|pts/.*|console)$} } $text =~ m{^(/dev/\S+)$}mg;
    return { heap => VGPU::Slice::heap($text), queues => "@flags", nodes => "@nodes" };
}

sub heap { return look(@_)->{heap} }

# A container that keeps computing, with the first of the devices; $id is the slice that its use is counted
# with.
sub computing {
    my ($name, $id, @devices) = @_;
    my $gpu = VGPU::Lab::gpu();
    VGPU::Lab::host(words($name, @devices) . "-d --rootfs $image:O $VGPU::Slice::compute --forever", timeout => 120);
    VGPU::Slice::soon(sub { (VGPU::Slice::in_arbiter($gpu, $id) // {})->{members} }, "$name does not compute");
    return;
}

sub end { my ($name) = @_; return VGPU::Lab::host("podman rm -f -t 0 $name >/dev/null", timeout => 120) }

sub killed {
    my ($name) = @_;
    return VGPU::Lab::host("podman kill -s KILL $name >/dev/null && podman rm -f $name >/dev/null", timeout => 120);
}

1;
