#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# Claims of Kubernetes by the guarded door on a card at a fake driver of NVIDIA's (lib/VGPU/FakeNvidia.pm): a pod's container
# without a node computes with CUDA. vgpu-kubelet as it is installed, a fake kubelet and API (tests/kubernetes/node), the
# real vgpud, and containerd, which is asked as a kubelet asks it. 61-cuda.t has the native door.
# Rig: --gpus 2 --packages tests/system/kubernetes/packages.txt
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use JSON::PP;
use VGPU::Containerd;
use VGPU::FakeNvidia;
use VGPU::Slice;
use VGPU::Test;

my $gpu = VGPU::FakeNvidia::gpu();
my $device = 'gpu-' . $gpu =~ tr/:./-/r;
my $node = '/run/node';
my $small = '/run/image-small';
my $client = '/opt/client-container';
my $remote = '/opt/remote-client';

sub host { return VGPU::Lab::host(@_) }
sub soon { return VGPU::Slice::soon(@_) }

# A question to the kubelet of the node.
sub ask {
    my (%words) = @_;
    return decode_json(host("socat -t 90 - UNIX-CONNECT:$node/socket", stdin => encode_json({ device => $device, %words }) . "\n", timeout => 120));
}

# A claim by the guarded door: its slice's UUID, once its container can be started.
sub prepared {
    my ($claim, $memory, $compute) = @_;
    my $answer = ask(do => 'prepare', claim => $claim, memory => $memory, compute => $compute, config => { door => 'guarded' });
    my ($slice) = map { m{^\Q$VGPU::Slice::kind\E=(.*)$} } @{ $answer->{cdi} // [] };
    die encode_json($answer) . "\n" if !$slice;
    return $slice;
}

sub unprepared {
    my ($claim) = @_;
    my $answer = ask(do => 'unprepare', claim => $claim);
    die encode_json($answer) . "\n" if ($answer->{error} // $answer->{exception} // 'no answer') ne '';
    return;
}

# A container of a pod with $options of its own, to its end.
sub in_pod {
    my ($slice, $command, $options) = @_;
    return host(VGPU::Containerd::words($slice, ($options // '') . ' localhost/small:1') . " $command 2>&1", timeout => 240);
}

my ($pod, $other);

point('a node whose card is one of NVIDIA\'s', sub {
    VGPU::Slice::mount_image($VGPU::Containerd::storage);
    VGPU::FakeNvidia::install('client-container', 'remote-client');
    my $said = VGPU::FakeNvidia::share();
    VGPU::FakeNvidia::set_guard('', 'FAKE_CUDA_CONTENT=1');
    VGPU::Containerd::install();
    VGPU::Containerd::small_tree($small);
    VGPU::Containerd::start($small);
    host("sed -i '/^\\[gpu $gpu/,\$ s/^mode=shared\$/&\\npool=kubernetes/' /etc/vgpu/gpus.conf && vgpuctl reload", timeout => 120);
    host(<<"SH", timeout => 120);
set -e
systemctl daemon-reload
systemd-run --quiet --unit=node /opt/kubernetes/tests/kubernetes/node $node
timeout 60 sh -c 'until [ -S $node/socket ]; do sleep 0.3; done'
systemctl start vgpu-kubelet
SH
    soon(sub { (ask(do => 'register')->{name} // '') eq 'gpu.mdev-vgpu.org' }, 'the kubelet does not find the driver');
    return $said;
});

# Nobody waits here between the answer and the container.
point('a claim with the door guarded: its container computes at once, without a node, and is right', sub {
    $pod = prepared('pod', '64Mi', '30');
    my $said = in_pod($pod, "$remote compute");
    my $slice = VGPU::Slice::in_ledger($pod);
    die "its door is $slice->{Door}\n" if $slice->{Door} ne 'guarded';
    my $cdi = host("cat /run/cdi/mdev-vgpu-owner-*.json");
    die $cdi if $cdi =~ /deviceNodes/ || $cdi !~ m{"/run/vgpu/cuda.sock"};
    return $said . $cdi;
});

point('it is told of the claim\'s memory, and gets no more', sub {
    my $said = in_pod($pod, $client);
    die $said if $said !~ /^64 MiB, 8 pieces$/m;
    return $said . in_pod($pod, "$remote limit");
});

point('a pod that runs as another user (runAsNonRoot), and one whose users are not the host\'s (hostUsers: false)', sub {
    my $ids = in_pod($pod, '/usr/bin/cat /proc/self/uid_map', '--host-users 2000000');
    die $ids if join(' ', split ' ', $ids) ne '0 2000000 65536';
    return join '', $ids, map { in_pod($pod, "$remote compute", $_) } '--user 1000 --read-only', '--host-users 2000000', '--host-users 2000000 --user 1000';
});

point('a second claim has its own part, while the first one is full', sub {
    my $job = VGPU::Lab::host_job(VGPU::Containerd::words($pod, '-e CLIENT_STAYS=1 localhost/small:1') . " $client 2>&1");
    soon(sub { VGPU::Slice::in_arbiter($gpu, $pod)->{vram_used} == 64 * 2**20 }, 'it has not taken its memory');
    $other = prepared('other', '128Mi', '30');
    my $said = in_pod($other, $client);
    die $said if $said !~ /^128 MiB, 16 pieces$/m;
    host('pkill -INT -f tests/kubernetes/cri');
    soon(sub { !VGPU::Slice::in_arbiter($gpu, $pod)->{vram_used} }, 'its memory is not given back');
    return $said;
});

point('vgpu-kubelet and vgpud are killed: the claim has the same slice, and computes', sub {
    host('systemctl kill -s KILL vgpu-kubelet; systemctl kill -s KILL vgpud');
    soon(sub { (ask(do => 'register')->{name} // '') eq 'gpu.mdev-vgpu.org' }, 'vgpu-kubelet is not back');
    my $again;
    soon(sub { eval { $again = prepared('pod', '64Mi', '30'); 1 } }, 'the claim is not prepared again');
    die "it has $again, and had $pod\n" if $again ne $pod;
    return in_pod($pod, "$remote compute");
});

point('claims are undone: nothing is left', sub {
    unprepared($_) for 'pod', 'other';
    VGPU::Slice::must_have_gone($gpu, $pod, $other);
    VGPU::Containerd::stop();
    host("systemctl stop vgpu-kubelet node; rm -rf /etc/vgpu/kubernetes.conf /var/lib/kubelet /opt/kubernetes $node $small");
    VGPU::FakeNvidia::remove();
    VGPU::Slice::unmount_image($VGPU::Containerd::storage);
    return '';
});

done_testing();
