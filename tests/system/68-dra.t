#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# Claims of Kubernetes, from the kubelet's call to a container that computes: vgpu-kubelet as it is installed, a fake
# kubelet and API (tests/kubernetes/node), the real vgpud, and podman, which gets the CDI device that the kubelet got. A
# stock Debian with Mesa computes in the container, and is held to its claim.
# Rig: --packages tests/system/kubernetes/packages.txt
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use JSON::PP;
use VGPU::Containerd;
use VGPU::Host;
use VGPU::Load;
use VGPU::Podman;
use VGPU::Slice;
use VGPU::Test;

my ($red, $blue) = baseline();
my $free = VGPU::Host::ledger();
my $gpu = VGPU::Lab::gpu();
my $device = 'gpu-' . $gpu =~ tr/:./-/r;
my $node = '/run/node';
my $mib = 2**20;
my $storage = '/var/lib/containers';
my $conf = VGPU::Lab::host('cat /etc/vgpu/gpus.conf');

sub host { return VGPU::Lab::host(@_) }
sub soon { return VGPU::Slice::soon(@_) }

# A question to the kubelet of the node (tests/kubernetes/node).
sub ask {
    my (%words) = @_;
    my $text = host("socat -t 90 - UNIX-CONNECT:$node/socket", stdin => encode_json({ device => $device, %words }) . "\n", timeout => 120);
    return decode_json($text);
}

# Prepares a claim, which must be done: the name of its CDI device without the kind, which is its slice's UUID.
sub prepared {
    my ($claim, %words) = @_;
    my $answer = ask(do => 'prepare', claim => $claim, %words);
    my $said = encode_json($answer);
    die "$said\n" if $answer->{error} // $answer->{exception} // '' or @{ $answer->{cdi} // [] } != 1;
    my ($slice) = $answer->{cdi}[0] =~ /^\Q$VGPU::Slice::kind\E=(.*)$/ or die "$said\n";
    return $slice;
}

sub unprepared {
    my ($claim) = @_;
    my $answer = ask(do => 'unprepare', claim => $claim);
    die encode_json($answer) if ($answer->{error} // $answer->{exception} // 'no answer') ne '';
    return;
}

# A container that keeps the GPU busy for a while: a job.
sub loading {
    my ($name, $slice, $iterations) = @_;
    return VGPU::Lab::host_job(VGPU::Podman::words($name, $slice)
            . "--rm --rootfs $VGPU::Slice::image:O /opt/" . VGPU::Load::command($name, $iterations, 30));
}

my ($pod, $capped, $other, $vm);

point('a node with vgpu-kubelet: its card is a device in the API', sub {
    VGPU::Slice::mount_image($storage, $VGPU::Containerd::storage);
    VGPU::Load::install();
    VGPU::Containerd::install();
    host("sed -i 's/^mode=shared\$/&\\npool=kubernetes/' /etc/vgpu/gpus.conf && vgpuctl reload", timeout => 120);
    host(<<"SH", timeout => 120);
set -e
systemctl daemon-reload
systemd-run --quiet --unit=node /opt/kubernetes/tests/kubernetes/node $node
timeout 60 sh -c 'until [ -S $node/socket ]; do sleep 0.3; done'
vgpu-kubelet --check
systemctl start vgpu-kubelet
SH
    soon(sub { (ask(do => 'register')->{name} // '') eq 'gpu.mdev-vgpu.org' }, 'the kubelet does not find the driver');
    my $found;
    soon(sub { $found = ask(do => 'devices')->{$device} }, 'the API has no device for the card');
    my $said = encode_json($found);
    die "$said\n" if $found->{capacity}{memory}{value} ne '512Mi' || !$found->{allowMultipleAllocations};
    return "$said\n" . host('vgpuctl gpu list; vgpuctl doctor | grep -i kube', fail => 1);
});

# The two VMs have three quarters of the card.
point('a claim of 64 MiB and 20 %: a container computes by the CDI device of the answer', sub {
    $pod = prepared('pod', memory => '64Mi', compute => '20');
    my $slice = VGPU::Slice::in_ledger($pod);
    my $said = encode_json($slice);
    die "$said\n" if $slice->{Vram} != 64 * $mib || $slice->{Compute} != 20 || $slice->{Door} ne 'guarded';
    return "$said\n" . VGPU::Podman::computes($pod);
});

# The kubelet gives the runtime the names that it was told.
point('containerd: a pod\'s container computes by the same CDI device, and sees the claim\'s memory', sub {
    my ($small, $usr) = ('/run/image-small', '/run/image-usr');
    VGPU::Containerd::small_tree($small);
    VGPU::Containerd::start($small);
    # Writable, as an image's own is: what a slice has below /usr gets its mount points there.
    host("mkdir -p $usr/upper $usr/work $usr/all && mount -t overlay -o lowerdir=$VGPU::Slice::image/usr,upperdir=$usr/upper,workdir=$usr/work overlay $usr/all");
    my $words = VGPU::Containerd::words($pod, "-v $usr/all:/usr localhost/small:1");
    my $said = VGPU::Compute::verdict(host("$words $VGPU::Slice::compute 2>&1", timeout => 240));
    my $heap = VGPU::Slice::heap(host("$words sh -c '$VGPU::Slice::vulkaninfo'", timeout => 240));
    VGPU::Containerd::stop();
    host("umount $usr/all && rm -r $small $usr");
    die "the heap has $heap bytes\n" if $heap != 64 * $mib;
    return $said;
});

# 40 MiB and 80 MiB in five buffers.
point('it is held to its memory: 40 MiB are given, 80 MiB are refused, and it has no node of the GPU', sub {
    my $seen = VGPU::Podman::look($pod);
    die encode_json($seen) . "\n" if $seen->{heap} != 64 * $mib || $seen->{nodes} ne '';
    die "it did not get 40 MiB\n" if !VGPU::Podman::has_memory_for($pod, 2 * $mib);
    die "it got 80 MiB\n" if VGPU::Podman::has_memory_for($pod, 4 * $mib);
    return encode_json($seen) . "\n";
});

# 40 MiB and 5 MiB fit, 40 MiB twice do not.
point('two containers of the pod share the claim: both compute, and its memory is for both together', sub {
    host(VGPU::Podman::words('first', $pod) . "-d --rootfs $VGPU::Slice::image:O $VGPU::Slice::compute --iterations 1 --forever --size "
        . 2 * $mib, timeout => 120);
    soon(sub { ((VGPU::Slice::in_arbiter($gpu, $pod) // {})->{vram_used} // 0) >= 40 * $mib }, 'the first has no 40 MiB');
    my $said = VGPU::Podman::computes($pod);
    die "both together got 80 MiB\n" if VGPU::Podman::has_memory_for($pod, 2 * $mib);
    my $runs = host('podman inspect -f "{{.State.Running}}" first');
    die "the first one runs: $runs" if $runs ne "true\n";
    VGPU::Podman::end('first');
    die "the second got no 40 MiB when the first had ended\n" if !VGPU::Podman::has_memory_for($pod, 2 * $mib);
    return $said;
});

point('vgpu-kubelet and vgpud are killed: the container goes on, and the claim has the same slice', sub {
    VGPU::Podman::computing('stays', $pod, $pod);
    host('systemctl kill -s KILL vgpu-kubelet');
    VGPU::Host::kill_vgpud();
    soon(sub { (ask(do => 'register')->{name} // '') eq 'gpu.mdev-vgpu.org' }, 'vgpu-kubelet is not back');
    my $again;
    soon(sub { eval { $again = prepared('pod'); 1 } }, 'the claim is not prepared again');
    die "it has $again, and had $pod\n" if $again ne $pod;
    my $worked = sub { return host("systemctl show -P CPUUsageNSec vgpu-guard\@$pod") };
    my $so_far = $worked->();
    soon(sub { $worked->() > $so_far + 1e9 }, 'its guard has nothing to do any more');
    my $runs = host('podman inspect -f "{{.State.Running}}" stays');
    die "it runs: $runs" if $runs ne "true\n";
    VGPU::Podman::end('stays');
    return '';
});

point('what the card has not is refused, with a sentence for the pod\'s events', sub {
    my %said = map { $_->[0] => ask(do => 'prepare', claim => $_->[0], memory => $_->[1], compute => $_->[2])->{error} }
        ['memory', '512Mi', '0'], ['compute', '64Mi', '80'];
    my $said = join '', map { "$_: $said{$_}\n" } sort keys %said;
    die $said if grep { !$_ } values %said;
    unprepared($_) for sort keys %said;
    return $said;
});

# Without the cap both would do the same.
point('the class gives the door native and a cap of 20 %: beside an equal claim without one it does a fifth', sub {
    my $iterations = VGPU::Load::iterations(100);
    my %same = (memory => '32Mi', compute => '0');
    $capped = prepared('capped', %same, config => { door => 'native', cap => 20 });
    $other = prepared('other', %same, config => { door => 'native' });
    my %jobs = (capped => loading('capped', $capped, $iterations), other => loading('other', $other, $iterations));
    my $part = VGPU::Load::parts(VGPU::Load::done(10, 25, %jobs))->{capped};
    my $said = sprintf "%.2f of the work\n", $part;
    die $said if $part > 0.3 || $part < 0.05;
    return $said;
});

point('a claim for a VM: the container has the nodes of VFIO and the file that names the vGPU, and nobody else can have it', sub {
    unprepared('other');
    my $answer = ask(do => 'prepare', claim => 'vm', memory => '32Mi', compute => '0', config => { door => 'vfio' });
    my $said = encode_json($answer);
    die "$said\n" if $answer->{error} // $answer->{exception} // '' or @{ $answer->{cdi} // [] } != 2;
    ($vm) = $answer->{cdi}[0] =~ /^\Q$VGPU::Slice::kind\E=(.*)$/ or die "$said\n";
    my $file = '/var/run/kubernetes.io/dra-device-attributes/resourceclaims/vm/gpu/gpu.mdev-vgpu.org-metadata.json';
    my $seen = host('podman run --rm --network none --log-driver none ' . join(' ', map { "--device $_" } @{ $answer->{cdi} })
        . " --rootfs $VGPU::Slice::image:O sh -c 'ls /dev/vfio; cat $file; echo; touch $file && echo written' 2>&1", timeout => 240, fail => 1);
    my ($group) = host("readlink /sys/bus/mdev/devices/$vm/iommu_group") =~ m{(\d+)$};
    my ($json) = $seen =~ /^(\{.*?^\})$/ms;
    my $found = eval { decode_json($json)->{requests}[0]{devices}[0]{attributes}{mdevUUID}{string} } // 'none';
    die "group $group; $seen\n" if $found ne $vm || $seen !~ /^\Q$group\E$/m || $seen !~ /^vfio$/m || $seen =~ /written/;
    return "$said\n$seen";
});

point('claims are undone, twice: nothing is left', sub {
    unprepared($_) for (qw(pod capped other vm)) x 2;
    my $left = host('ls -d /run/cdi/mdev-vgpu-metadata-* /var/lib/kubelet/plugins/*/metadata/*', fail => 1);
    die "files: $left" if $left =~ m{^/}m;
    my $owners = host('vgpuctl owner list --no-headers');
    die "owners: $owners" if $owners =~ /\S/;
    host("systemctl stop vgpu-kubelet node; rm -rf /etc/vgpu/kubernetes.conf /var/lib/kubelet /opt/kubernetes $node");
    host('cat >/etc/vgpu/gpus.conf', stdin => $conf);
    host('vgpuctl reload', timeout => 120);
    VGPU::Slice::unmount_image($storage, $VGPU::Containerd::storage);
    VGPU::Slice::must_have_gone($gpu, $pod, $capped, $other);
    die "vGPU $vm is there\n" if $vm && host("ls -d /sys/bus/mdev/devices/$vm", fail => 1) =~ m{^/};
    VGPU::Host::must_be_sane($free, $red->{vgpu}, $blue->{vgpu});
    return computes($red) . computes($blue);
});

done_testing();
