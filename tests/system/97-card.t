#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# vgpu-card on the host's GPU, by a user who may open its node and nothing else: its statements on the doors match other
# tests, limits hold, and nothing of it is left.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use JSON::PP;
use VGPU::Test;

my $user = 'setpriv --reuid 65534 --regid 65534 --groups $(getent group render | cut -d: -f3) env HOME=/nonexistent';
my $traces = 'ls -A /tmp; find /run/vgpu /etc/vgpu | sort; pgrep -c vgpu-arbiter; pgrep -c vgpu-guard; pgrep -a "^(vk-|governor-load)"; :';
my $sheet;

sub host { return VGPU::Lab::host(@_) }

sub row {
    my ($name) = @_;
    my ($row) = grep { $_->{row} =~ /$name/ } @{ $sheet->{governor} };
    die "no row $name\n" if !$row;
    return $row;
}

baseline();

point('a user measures the card, and leaves nothing', sub {
    my $before = host($traces);
    my $text = host("$user vgpu-card --rounds 1 --json - 2>&1", timeout => 1200);
    $sheet = decode_json($text =~ s/^vgpu-card: .*\n//mgr);
    my $after = host($traces);
    die "before:\n$before\nafter:\n$after" if $after ne $before;
    return $text;
});

point('it is the GPU of this host', sub {
    die encode_json($sheet->{gpu}) if $sheet->{gpu}{address} ne VGPU::Lab::gpu() || $sheet->{gpu}{kernel_driver} ne 'virtio-pci';
    return $sheet->{seen_on};
});

point('both doors of containers work, and VMs are expected to', sub {
    my @closed = grep { !$_->{works} } @{ $sheet->{doors} };
    die encode_json(\@closed) if @closed || @{ $sheet->{doors} } != 3;
    return;
});

point('all rows have been measured at all places', sub {
    my @gaps = map { my $row = $_; map { "$row->{row} $_" } grep { !$row->{$_} } qw(native governed guarded) } @{ $sheet->{speed} };
    die "@gaps\n" . encode_json($sheet->{failed} // []) if @gaps || $sheet->{failed} || @{ $sheet->{speed} } < 8;
    return;
});

# Bounds that the same run without a governor does not keep.
point('the cap and the limit of memory hold, and would not without the governor', sub {
    my ($cap, $memory) = (row('cap'), row('limit'));
    die encode_json($cap) if $cap->{with} > 40 || $cap->{without} < 60;
    die encode_json($memory) if $memory->{with} > 256 || $memory->{without} <= 256;
    return encode_json($sheet->{governor});
});

point('vgpuctl doctor --card is vgpu-card', sub {
    my $said = host('d=$(mktemp -d); printf "#!/bin/sh\necho card \"\$@\"\n" >$d/vgpu-card; chmod +x $d/vgpu-card; '
        . 'PATH=$d:$PATH vgpuctl doctor --card; PATH=$d:$PATH vgpuctl doctor --card -o json; rm -r $d');
    die $said if $said ne "card\ncard --json -\n";
    return $said;
});

done_testing();
