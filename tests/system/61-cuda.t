#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# The CUDA door in podman's, docker's and containerd's containers, with everything as it is installed but NVIDIA's part
# (VGPU::FakeNvidia). A program that knows nothing of slices is held to its slice, in an image with its own loader, and in
# one that brings its own libcuda. containerd is asked as a kubelet asks it.
# Rig: --gpus 2 --packages tests/system/kubernetes/packages.txt
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use JSON::PP;
use VGPU::Containerd;
use VGPU::FakeNvidia;
use VGPU::Podman;
use VGPU::Slice;
use VGPU::Test;

my $kind = $VGPU::Slice::kind;
my $web = 'cd610000-0000-4000-8000-000000000001';
my $libraries = $VGPU::FakeNvidia::libraries;
my $image = $VGPU::Slice::image;
# An image of the least that a program needs, and the same with a libcuda of its own.
my ($small, $own) = ('/run/image-small', '/run/image-own');
my $compat = '/usr/local/cuda-12.4/compat';
my @storage = qw(/var/lib/containers /var/lib/docker /var/lib/containerd);
my @units = qw(docker.socket docker.service containerd.service);
# What the program prints: in its slice, and without one.
my ($held, $free) = ("64 MiB, 8 pieces\n", "8192 MiB, 64 pieces\n");
my $gpu = VGPU::FakeNvidia::gpu();
# What the fake driver needs to know.
my $card = join ' ', map { "-e $_" } split ' ', VGPU::FakeNvidia::env();
my $program = '/opt/client-container';

sub host { return VGPU::Lab::host(@_) }
sub ctl { return VGPU::Slice::ctl(@_) }
sub given_back { return VGPU::Slice::soon(sub { VGPU::Slice::in_ledger($web)->{Container} eq '' }, 'the container has it still') }

# The words of a container of podman's, or of docker's, with the slice and with $options of theirs.
sub podman { my ($options, $root) = @_; return VGPU::Podman::words("cuda-$$", 'web') . "--rm $card $options --rootfs $root" }

sub docker {
    my ($options) = @_;
    return "docker run --rm --network none --log-driver none --device $kind=web $card $options -v $VGPU::Slice::programs:/opt:ro small";
}

# Its program prints this, and the slice is free again.
sub prints {
    my ($expected, $words) = @_;
    my $said = host("$words 2>&1", timeout => 240);
    die "it prints:\n$said" if $said ne $expected;
    given_back();
    return $said;
}

# The container is not started, and the hook says why.
sub refused {
    my ($words, $why) = @_;
    my $since = host('date +%s.%N') =~ s/\s//gr;
    my $said = host("$words 2>&1", fail => 1, timeout => 240);
    die "it runs:\n$said" if $VGPU::Command::status == 0 || $said =~ /pieces/;
    my $log = host("journalctl -q --no-pager -t vgpu-container-hook --since \@$since");
    die "the hook says:\n$log" if $log !~ $why;
    given_back();
    return $log;
}

point('a GPU at a driver called nvidia, which the fake driver serves, is shared', sub {
    VGPU::Containerd::install();
    VGPU::Slice::mount_image(@storage);
    VGPU::FakeNvidia::install('client-container');
    return VGPU::FakeNvidia::share()
        . host("readlink /sys/bus/pci/devices/$gpu/driver; vgpuctl gpu show $gpu | grep NVIDIA.s.library; cat /sys/module/nvidia/version /proc/driver/nvidia/gpus/$gpu/information");
});

point('two images: one without a libcuda, one that brings its own', sub {
    VGPU::Containerd::small_tree($_) for $small, $own;
    return host(<<"SH");
set -e
mkdir -p $own$compat
cp $libraries/libcuda.so.570.1 $own$compat/libcuda.so.1
cp $libraries/libnvidia-ml.so.570.1 $own$compat/libnvidia-ml.so.1
ln -sfn libcuda.so.1 $own$compat/libcuda.so
ln -sfn libnvidia-ml.so.1 $own$compat/libnvidia-ml.so
find $own -type f
SH
});

point('a slice has nodes, driver, door and hook in CDI\'s file', sub {
    my $said = ctl("slice create --gpu $gpu --vram 64M --door native --name web --uuid $web");
    my ($device) = grep { $_->{name} eq 'web' } @{ decode_json(host('cat /var/run/cdi/mdev-vgpu.json'))->{devices} };
    my $edits = $device->{containerEdits};
    my @nodes = sort map { $_->{path} } @{ $edits->{deviceNodes} };
    die "nodes: @nodes\n" if "@nodes" ne '/dev/nvidia-uvm /dev/nvidia0 /dev/nvidiactl';
    die "no hook\n" if !grep { $_->{hookName} eq 'createRuntime' && $_->{args}[1] eq 'put-cuda' } @{ $edits->{hooks} };
    VGPU::Slice::soon(sub { VGPU::Slice::in_arbiter($gpu, $web) }, 'the arbiter does not know it');
    return $said . JSON::PP->new->pretty->encode($edits);
});

point('podman: a stock Debian shows a program its slice, and gives it no more', sub {
    return prints($held, podman('', "$image:O $program"));
});

# The runtimes have systemd make the containers' cgroups. It knows their devices by links in /dev/char, and with a
# daemon-reload it may take away those that it does not know. NVIDIA's driver has none made. podman with crun keeps them
# without the links, too.
sub nodes_after_reload {
    my $open = 'sh -c \'for n in nvidia0 nvidiactl nvidia-uvm; do : </dev/$n || exit 1; done; echo all\'';
    host(podman('', "$image:O sleep 600") =~ s/ run / run -d /r, timeout => 240);
    my $seen = host("podman exec cuda-$$ $open; systemctl daemon-reload; podman exec cuda-$$ $open 2>&1", fail => 1, timeout => 240);
    host("podman rm -f -t 0 cuda-$$", timeout => 120);
    given_back();
    return $seen;
}

point('a daemon-reload of systemd does not take the nodes of a running container away', sub {
    my $links = host('ls -l /dev/char/195:*');
    die $links if $links !~ /nvidia0$/m || $links !~ /nvidiactl$/m;
    my $seen = nodes_after_reload();
    die $links . $seen if $seen ne "all\nall\n";
    return "$links$seen";
});

# Triton's search for libcuda (third_party/nvidia/backend/driver.py): in what ldconfig lists.
point('podman: "ldconfig -p" lists libcuda, and ldconfig keeps it', sub {
    my $list = '/sbin/ldconfig -p | grep -F libcuda.so.1';
    my $said = host(podman('', "$image:O sh -c '$list && /sbin/ldconfig && $list'") . ' 2>&1', timeout => 240);
    die $said if $said !~ m{\A(?:\tlibcuda\.so\.1 \(libc6,x86-64\) => (?:/usr)?/lib(?:/x86_64-linux-gnu|64)/libcuda\.so\.1\n){2,4}\z};
    given_back();
    return $said;
});

# "module load", or a profile of the image's.
point('podman: a login shell that sets LD_LIBRARY_PATH anew leaves the slice as it is', sub {
    return prints($held, podman('', "$image:O bash -lc 'export LD_LIBRARY_PATH=/nowhere; exec $program'"));
});

point('podman: in the smallest image, too', sub { return prints($held, podman('', "$small:O $program")) });

point('podman: with --read-only', sub { return prints($held, podman('--read-only', "$small:O $program")) });

my $with_own = "-e LD_LIBRARY_PATH=$compat";

point('podman: a libcuda that the image brings is covered; without the slice it has the whole card', sub {
    my $without = host("podman run --rm --network none --log-driver none $card $with_own -v $VGPU::Slice::programs:/opt:ro --rootfs $own:O $program 2>&1", timeout => 240);
    die "without: $without" if $without ne $free;
    return $without . prints($held, podman($with_own, "$own:O $program"));
});

point('podman: another device that brings NVIDIA\'s driver is refused', sub {
    host('mkdir -p /etc/cdi && cat >/etc/cdi/nvidia.json', stdin => encode_json({
        cdiVersion => '0.5.0', kind => 'nvidia.com/gpu', devices => [{ name => 'all', containerEdits => { mounts => [{
            hostPath => "$libraries/libcuda.so.570.1", containerPath => "$libraries/libcuda.so.1", options => ['ro', 'bind'] }] } }] }));
    my $log = refused(podman('--device nvidia.com/gpu=all', "$small:O $program"), qr/also given NVIDIA's driver without a limit/);
    host('rm /etc/cdi/nvidia.json');
    return $log . refused(podman("-v $libraries/libcuda.so.570.1:$libraries/libcuda.so.1:ro", "$small:O $program"), qr/also given NVIDIA's driver/)
        . prints($held, podman('', "$small:O $program"));
});

point('podman: a container that is killed gives its memory back', sub {
    my $job = VGPU::Lab::host_job(podman('-e CLIENT_STAYS=1', "$small:O $program"));
    VGPU::Slice::soon(sub { VGPU::Slice::in_arbiter($gpu, $web)->{vram_used} == 64 * 2**20 }, 'it has not taken its memory');
    host("podman kill -s KILL cuda-$$", timeout => 120);
    VGPU::Slice::soon(sub { !VGPU::Slice::in_arbiter($gpu, $web)->{vram_used} }, 'its memory is not given back');
    given_back();
    return prints($held, podman('', "$small:O $program"));
});

# At once, while the service that does so is stopped.
sub read_driver { return host(VGPU::FakeNvidia::env() . " FAKE_CUDA_CARD=$VGPU::FakeNvidia::card /usr/lib/mdev-vgpu/vgpu-nvidia-readings --once") }

# The driver's own library goes before ours. Everybody sees the same card, and each other; so do the readings.
point('podman: what goes round the door is reported, and its slice is charged', sub {
    my $shared = $VGPU::FakeNvidia::card;
    my $see = "-e FAKE_CUDA_CARD=$shared -v $shared:$shared --pid host";
    host('systemctl stop vgpu-nvidia-readings.service');
    my $job = VGPU::Lab::host_job(podman("$see -e CLIENT_STAYS=1 -e LD_PRELOAD=/usr/lib/mdev-vgpu/real/libcuda.so.1", "$small:O $program"));
    VGPU::Slice::soon(sub {
        read_driver();
        return VGPU::Slice::in_arbiter($gpu, $web)->{vram_ungoverned} >= 512 * 2**20;
    }, 'it is not charged');
    my $said = host("journalctl -q -u vgpu-meter --no-pager | grep 'without the slice.s governor'");
    my $governed = host("podman exec -e CLIENT_STAYS= -e LD_PRELOAD= cuda-$$ $program 2>&1", fail => 1, timeout => 120);
    die "a program of the same slice gets memory:\n$governed" if $governed ne "64 MiB, 0 pieces\n";
    host("podman kill -s KILL cuda-$$", timeout => 120);
    given_back();
    VGPU::Slice::soon(sub { !VGPU::Slice::in_arbiter($gpu, $web)->{vram_used} }, 'its memory is charged still');
    host('systemctl start vgpu-nvidia-readings.service');
    return $said . $governed . prints($held, podman('', "$small:O $program"));
});

# As Ollama looks for the driver: the door is in the loader's way only.
my $by_path = <<'PY';
import ctypes, glob, time
driver = ctypes.CDLL(sorted(glob.glob('/usr/lib/*-linux-gnu/libcuda.so*'))[-1])
context, memory = ctypes.c_void_p(), ctypes.c_uint64()
assert driver.cuInit(0) == 0
assert driver.cuCtxCreate_v2(ctypes.byref(context), 0, 0) == 0
assert driver.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(64 << 20)) == 0
print('holding', flush=True)
time.sleep(1000)
PY

point('vgpuctl run: a program that opens the driver by its path is reported, and its slice is charged', sub {
    host('cat >/run/by-path.py', stdin => $by_path);
    host('systemctl stop vgpu-nvidia-readings.service');
    my $job = VGPU::Lab::host_job('env ' . VGPU::FakeNvidia::env() . " FAKE_CUDA_CARD=$VGPU::FakeNvidia::card vgpuctl run --gpu $gpu --vram 32M -- python3 /run/by-path.py 2>&1");
    $job->expect(qr/^holding/m, 120);
    my ($slice) = map { $_->{Uuid} } grep { $_->{Uuid} ne $web } @{ decode_json(ctl('-o json slice list')) };
    VGPU::Slice::soon(sub { read_driver(); return VGPU::Slice::in_arbiter($gpu, $slice)->{vram_ungoverned} >= 64 * 2**20 }, 'it is not charged');
    my $said = host("journalctl -q -u vgpu-meter --no-pager | grep 'without the slice.s governor' | tail -1");
    host('pkill -f by-path.py');
    $job->wait(60, fail => 1);
    host('rm /run/by-path.py; systemctl start vgpu-nvidia-readings.service');
    VGPU::Slice::soon(sub { !VGPU::Slice::in_ledger($slice) }, 'its slice is there still');
    return $said;
});

point('errors in its memory fence the GPU, until somebody has looked', sub {
    VGPU::FakeNvidia::set_readings('FAKE_NVML_ECC=2');
    host('systemctl restart vgpu-nvidia-readings.service');
    VGPU::Slice::soon(sub { host("vgpuctl gpu show $gpu") =~ /^Healthy: +no: 2 errors in its memory/m }, 'it is not fenced');
    my $said = host("vgpuctl slice create --gpu $gpu --vram 1M --door native", fail => 1);
    die $said if $VGPU::Command::status != 7 || $said !~ /it is not healthy/;
    host("vgpuctl gpu clear $gpu");
    return $said . host("vgpuctl gpu show $gpu | grep Healthy");
});

point('docker: the same images, --read-only, and the refusal', sub {
    host(<<"SH", timeout => 300);
set -e
mkdir -p /etc/docker
printf '%s\\n' '{"features": {"cdi": true}, "iptables": false, "bridge": "none"}' >/etc/docker/daemon.json
systemctl unmask @units
systemctl start docker
tar -C $own -cf - . | docker import - small
SH
    my $seen = prints($held, docker('') . " $program");
    $seen .= prints($held, docker('--read-only --tmpfs /run') . " $program");
    $seen .= prints($held, docker($with_own) . " $program");
    return $seen . refused(docker("-v $libraries/libcuda.so.570.1:$libraries/libcuda.so.1:ro") . " $program", qr/also given NVIDIA's driver/);
});

# What a kubelet has the runtime do for a pod whose claim or seat is this slice.
point('containerd: pods with the same images, read-only, the refusal, and a pod that is removed', sub {
    VGPU::Containerd::start($small);
    VGPU::Containerd::import_tree('own', $own);
    my $words = sub { my ($image, $options) = @_; return VGPU::Containerd::words('web', "$card $options localhost/$image:1") . " $program" };
    my $seen = prints($held, $words->('small', ''));
    $seen .= prints($held, $words->('small', '--read-only'));
    $seen .= prints($held, $words->('own', $with_own));
    $seen .= refused($words->('small', "-v $libraries/libcuda.so.570.1:$libraries/libcuda.so.1:ro"), qr/also given NVIDIA's driver/);
    my $job = VGPU::Lab::host_job($words->('small', '-e CLIENT_STAYS=1'));
    VGPU::Slice::soon(sub { VGPU::Slice::in_arbiter($gpu, $web)->{vram_used} == 64 * 2**20 }, 'it has not taken its memory');
    host('pkill -INT -f tests/kubernetes/cri');
    VGPU::Slice::soon(sub { !VGPU::Slice::in_arbiter($gpu, $web)->{vram_used} }, 'its memory is not given back');
    given_back();
    return $seen;
});

# vgpu-kubelet as it is installed, a fake kubelet and API (tests/kubernetes/node), and the guide's pod with CUDA.
point('Kubernetes: the claim of pod-cuda.yaml gives a pod CUDA, and no more than it asks for', sub {
    my $ask = sub {
        my (%words) = @_;
        my $text = encode_json({ device => 'gpu-' . $gpu =~ tr/:./-/r, claim => 'cuda', %words });
        return decode_json(host('socat -t 90 - UNIX-CONNECT:/run/node/socket', stdin => "$text\n", timeout => 120));
    };
    ctl('slice remove web');
    host("sed -i '/^\\[gpu $gpu/,\$ s/^mode=shared\$/&\\npool=kubernetes/' /etc/vgpu/gpus.conf && vgpuctl reload", timeout => 120);
    host(<<'SH', timeout => 120);
set -e
systemctl daemon-reload
systemd-run --quiet --unit=node /opt/kubernetes/tests/kubernetes/node /run/node
timeout 60 sh -c 'until [ -S /run/node/socket ]; do sleep 0.3; done'
systemctl start vgpu-kubelet
SH
    VGPU::Slice::soon(sub { ($ask->(do => 'register')->{name} // '') eq 'gpu.mdev-vgpu.org' }, 'the kubelet does not find the driver');
    my $answer = $ask->(do => 'prepare', example => '/usr/share/doc/vgpu-kubelet/examples/pod-cuda.yaml');
    my ($slice) = map { m{^\Q$kind\E=(.*)$} } @{ $answer->{cdi} // [] };
    die encode_json($answer) . "\n" if !$slice;
    die "its door is not native\n" if VGPU::Slice::in_ledger($slice)->{Door} ne 'native';
    my $said = host(VGPU::Containerd::words($slice, "$card localhost/small:1") . " $program 2>&1", timeout => 240);
    die "it prints:\n$said" if $said ne "4096 MiB, 64 pieces\n";
    die encode_json($answer) . "\n" if ($ask->(do => 'unprepare')->{error} // 'no answer') ne '';
    VGPU::Slice::must_have_gone($gpu, $slice);
    host("systemctl stop vgpu-kubelet node; rm -r /run/node /etc/vgpu/kubernetes.conf; sed -i '/^pool=kubernetes/d' /etc/vgpu/gpus.conf && vgpuctl reload",
        timeout => 120);
    ctl("slice create --gpu $gpu --vram 64M --door native --name web --uuid $web");
    return $said;
});

point('nothing is left', sub {
    VGPU::Containerd::stop();
    host("systemctl stop @units; rm -r /etc/docker; systemctl mask @units", timeout => 120);
    ctl('slice remove web');
    VGPU::Slice::must_have_gone($gpu, $web);
    VGPU::FakeNvidia::remove();
    host("rm -r $small $own /opt/kubernetes");
    VGPU::Slice::unmount_image(@storage);
    return '';
});

done_testing();
