#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# Kubernetes itself: the kubelet, API server, scheduler and controllers of Debian 12's source (1.20), containerd, and
# vgpu-kubelet with the real vgpud. Pods get seats of the card by the device plugin, a stock Debian with Mesa computes in
# one, and the rest is what tests/fleet/real-kubernetes asks. Claims need a newer Kubernetes than Debian has.
# Rig: --packages tests/system/kubernetes/real-packages.txt
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use VGPU::Containerd;
use VGPU::Slice;
use VGPU::Test;

my $place = '/opt/kubernetes';
my @only_newer = qw(slice two-share third-waits third-runs taint);

sub host { return VGPU::Lab::host(@_) }

# Files of the checkout, under the same paths below $place.
sub send_files {
    my ($from, @files) = @_;
    VGPU::Command::run(['bash', '-c', 'tar -C "$1" --owner=0 --group=0 -cf - "${@:3:$2}" | "${@:3+$2}"', 'send', $from, scalar @files, @files,
        VGPU::Lab::rig('run', '--', 'tar', '-C', $place, '-xf', '-')], timeout => 300);
    return;
}

# The usual VMs are not needed here, and Debian's etcd has the ports of the cluster's own.
$_->destroy for map { VGPU::Tenant->new($_) } qw(red blue);
host('systemctl stop etcd', fail => 1);

my $ready = point('a host with containerd, etcd and vgpu-kubelet', sub {
    my $top = VGPU::Lab::top();
    VGPU::Command::run(["$top/tests/rig/in-suite", 'bookworm', 'tests/kubernetes/real-packages.txt', 'tests/kubernetes/build-real'],
        timeout => 3600, name => '[build] Kubernetes');
    VGPU::Slice::mount_image($place);
    VGPU::Containerd::install();
    send_files("$top/build/bookworm", 'kubernetes-real');
    send_files($top, 'tests/fleet/real-kubernetes', 'tests/kubernetes/real', 'fleet/kubernetes/conf');
    host("grep -q ^pool= /etc/vgpu/gpus.conf || sed -i 's/^mode=shared\$/&\\npool=kubernetes/' /etc/vgpu/gpus.conf; vgpuctl reload && systemctl daemon-reload", timeout => 120);
    return host('containerd --version; etcd --version | head -n 1; vgpuctl gpu list');
});

# The rest of the tenant's is the guests' tree, which is mounted into it.
$ready &&= point('containerd has an image', sub {
    my $small = '/run/image-small';
    VGPU::Containerd::small_tree($small);
    host(<<'SH');
mkdir -p /etc/cni/net.d
echo '{"cniVersion": "0.4.0", "name": "lo", "type": "loopback"}' >/etc/cni/net.d/10-lo.conf
SH
    VGPU::Containerd::start($small);
    return host("rm -r $small; ctr -n k8s.io images list");
});

if ($ready) {
    my $said = host("PATIENCE=5 IMAGE=localhost/small:1 TYPE=quarter VOLUMES='$VGPU::Slice::image/usr:/usr $VGPU::Slice::programs:/opt'"
        . " PROGRAM='$VGPU::Slice::compute' $place/tests/fleet/real-kubernetes $place/kubernetes-real 2>&1", timeout => 3000, fail => 1);
    my %skipped;
    for my $line ($said =~ /^((?:not )?ok \d+ - .*)/mg) {
        my ($name) = $line =~ / - ([\w-]+)/;
        $skipped{$name} = 1, next if $line =~ /# skip/;
        point($line =~ s/.* - //r, sub { die "$said\n" if $line =~ /^not ok/; return });
    }
    point('only claims were skipped, and the pod has computed', sub {
        my @other = grep { !delete $skipped{$_} } @only_newer;
        die "not skipped: @other; skipped: @{[sort keys %skipped]}\n$said\n" if @other || %skipped || $said !~ /^1\.\./m;
        return VGPU::Compute::verdict($said =~ s/^# //mgr);
    }) or diag(host('tail -n 20 /tmp/vgpu-real.*/*.log; journalctl -q --no-pager -o cat -u containerd -u vgpu-kubelet -u vgpud -n 60', fail => 1));
}

point('nothing is left', sub {
    VGPU::Containerd::stop();
    host("systemctl stop vgpu-kubelet; umount $place; rm -rf /etc/vgpu/kubernetes.conf", fail => 1, timeout => 120);
    my $owners = host('vgpuctl owner list --no-headers');
    die "owners: $owners" if $owners =~ /^k8s/m;
    return;
});

done_testing();
