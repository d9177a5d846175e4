# SPDX-License-Identifier: MIT
# Whole GPUs: their modes by vgpuctl, and PCI devices that are attached to a tenant's VM.
package VGPU::Whole;

use strict;
use warnings;

use JSON::PP;
use Time::HiRes qw(sleep time);
use VGPU::Command;
use VGPU::Lab;

# vgpuctl's description of a GPU.
sub show {
    my ($gpu) = @_;
    return decode_json(VGPU::Lab::host("vgpuctl -o json gpu show $gpu", timeout => 90));
}

# Waits until the GPU has that mode, and no switch is under way.
sub until_mode {
    my ($gpu, $mode, $limit) = @_;
    my $end = time + ($limit // 60);
    my $seen;
    do {
        $seen = show($gpu);
        return $seen if $seen->{Mode} eq $mode && !$seen->{Switching};
        sleep 0.5;
    } while (time < $end);
    die "GPU $gpu is $seen->{Mode}, switching to '$seen->{Switching}', and should be $mode\n";
}

# `vgpuctl gpu mode` with these words: dies if its exit status is not $status. Returns its output.
sub mode {
    my ($words, %opt) = @_;
    my $said = VGPU::Lab::host("vgpuctl gpu mode $words 2>&1", timeout => $opt{timeout} // 120, fail => 1);
    my $wanted = $opt{status} // 0;
    die "gpu mode $words: status $VGPU::Command::status and not $wanted:\n$said" if $VGPU::Command::status != $wanted;
    return $said;
}

sub pci_xml {
    my ($address, $managed) = @_;
    my ($domain, $bus, $slot, $function) = $address =~ /^(....):(..):(..)\.(.)$/ or die "no address: $address\n";
    return <<"XML";
<hostdev mode='subsystem' type='pci' managed='$managed'>
  <source><address domain='0x$domain' bus='0x$bus' slot='0x$slot' function='0x$function'/></source>
</hostdev>
XML
}

sub plug {
    my ($tenant, $address, $managed) = @_;
    VGPU::Lab::host("virsh attach-device $tenant->{name} /dev/stdin --live",
        stdin => pci_xml($address, $managed), timeout => 300);
    return;
}

# Until the guest has released it.
sub unplug {
    my ($tenant, $address, $managed) = @_;
    VGPU::Lab::host("virsh detach-device $tenant->{name} /dev/stdin --live",
        stdin => pci_xml($address, $managed), timeout => 120);
    my $end = time + 120;
    while (time < $end) {
        return if VGPU::Lab::host("virsh dumpxml $tenant->{name}") !~ /type='pci' managed/;
        sleep 0.5;
    }
    die "$tenant->{name} still has $address\n";
}

1;
