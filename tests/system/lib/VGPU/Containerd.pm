# SPDX-License-Identifier: MIT
# Pods of containerd's, with slices by CDI, made as a kubelet makes them (tests/kubernetes/cri).
package VGPU::Containerd;

use strict;
use warnings;

use JSON::PP;
use VGPU::Command;
use VGPU::Lab;
use VGPU::Slice;

our $storage = '/var/lib/containerd';
my $conf = '/etc/containerd/config.toml';
# Of pods' networks: a plugin of CNI's that does nothing, for pods that may not have the host's.
my ($networks, $plugins) = ('/etc/cni/net.d', '/run/cni');
my $libraries = '/usr/lib/x86_64-linux-gnu';

# The least tree that a program needs, of the image's own files: the loader, libc, and programs for pods that do nothing,
# and that show what they have.
sub small_tree {
    my ($root) = @_;
    my $image = $VGPU::Slice::image;
    VGPU::Lab::host(<<"SH", timeout => 120);
set -e
mkdir -p $root$libraries $root/usr/lib64 $root/usr/bin
cd $root
mkdir -p opt run dev proc sys etc tmp
for name in lib lib64 bin; do ln -sfn usr/\$name \$name; done
cp -L $image/lib64/ld-linux-x86-64.so.2 usr/lib64/
cp -L $image$libraries/libc.so.6 $image$libraries/libm.so.6 .$libraries/
cp -L $image/usr/bin/sleep $image/usr/bin/cat usr/bin/
SH
    return;
}

# A tree as an image of this name, which sleeps if it is given no other program.
sub import_tree {
    my ($name, $root) = @_;
    VGPU::Lab::host(<<"SH", timeout => 300);
set -e
dir=\$(mktemp -d)
cd \$dir
tar -C $root -cf layer.tar .
sum=\$(sha256sum layer.tar | cut -d' ' -f1)
echo '{"architecture": "amd64", "os": "linux", "config": {"Entrypoint": ["/usr/bin/sleep", "1000000"]}, "rootfs": {"type": "layers", "diff_ids": ["sha256:'\$sum'"]}}' >config.json
echo '[{"Config": "config.json", "RepoTags": ["localhost/$name:1"], "Layers": ["layer.tar"]}]' >manifest.json
tar -cf image.tar manifest.json config.json layer.tar
ctr -n k8s.io images import image.tar
rm -r \$dir
SH
    return;
}

sub make_network {
    my $plugin = <<'SH';
#!/bin/sh
case $CNI_COMMAND in
VERSION) echo '{"cniVersion": "0.4.0", "supportedVersions": ["0.3.1", "0.4.0"]}' ;;
ADD) echo '{"cniVersion": "0.4.0", "interfaces": [{"name": "'$CNI_IFNAME'", "sandbox": "'$CNI_NETNS'"}],'
    echo '"ips": [{"version": "4", "interface": 0, "address": "192.0.2.2/24"}]}' ;;
esac
SH
    VGPU::Lab::host("mkdir -p $networks $plugins && cat >$networks/10-none.conflist", stdin => encode_json({
        cniVersion => '0.4.0', name => 'none', plugins => [{ type => 'none' }] }));
    VGPU::Lab::host("tee $plugins/none | sed s/0.4.0/0.3.1/ >$plugins/loopback && chmod +x $plugins/*", stdin => $plugin);
    return;
}

# Starts it with the image localhost/small:1, of the tree $root, which every pod's first process has, too. containerd 1
# must be told that it may read CDI's files.
sub start {
    my ($root) = @_;
    make_network();
    VGPU::Lab::host("mkdir -p /etc/containerd && cat >$conf", stdin => <<"TOML");
version = 2
[plugins."io.containerd.grpc.v1.cri"]
  enable_cdi = true
  sandbox_image = "localhost/small:1"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "$plugins"
TOML
    VGPU::Lab::host('systemctl unmask containerd && systemctl restart containerd', timeout => 120);
    import_tree('small', $root);
    return;
}

sub stop {
    VGPU::Lab::host("systemctl stop containerd; systemctl mask containerd; rm -rf $conf $networks $plugins", fail => 1, timeout => 120);
    return;
}

# The client, in L1 (kubernetes-in-l1 in fleet/kubernetes/kubernetes.mk has vgpu-kubelet, too).
sub install {
    my $top = VGPU::Lab::top();
    VGPU::Command::run([VGPU::Lab::rig('build', '--with', 'tests/kubernetes/packages.txt', '--', 'make', '-s', 'kubernetes-in-l1')],
        timeout => 900, name => '[build] make kubernetes-in-l1');
    VGPU::Command::run(['bash', '-c', 'tar -C "$0" --owner=0 --group=0 -czf - . | "$@"', "$top/build/kubernetes/in-l1",
        VGPU::Lab::rig('run', '--', 'tar', '-C', '/', '-xzf', '-', '--no-overwrite-dir')], timeout => 120);
    return;
}

# The words of a pod's container with a slice and with $options.
sub words {
    my ($device, $options) = @_;
    return "/opt/kubernetes/tests/kubernetes/cri --device $VGPU::Slice::kind=$device -v $VGPU::Slice::programs:/opt:ro $options";
}

1;
