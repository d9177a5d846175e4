#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# The hooks of a guarded slice with CUDA in containers of podman's (crun) and docker's (containerd, runc), as hardened ones
# and those with volumes are, and of a VM's vGPU. CDI's file of the slice is made here as vgpud makes it, but for the claim; a worker with the fake driver
# is the guard. All of it with vgpud is in tests/system/61-cuda-guarded.t.
# Run by `check`, in a mount namespace of its own: what is mounted here is nobody else's.
use strict;
use warnings;
use Cwd;
use File::Path 'make_path';
use JSON::PP;
use POSIX ();
use Test::More;
use Time::HiRes 'sleep';

my $top = getcwd();
my $libraries = 'usr/lib/x86_64-linux-gnu';
my $image = '/tmp/runtimes/image';
my $volumes = '/tmp/runtimes/volumes';
my $guard = '/run/vgpu/guard/slice/cuda.sock';
my $door = '/usr/lib/mdev-vgpu';
my $hook = "$top/build/container-hooks/vgpu-container-hook";
my $program = '/opt/remote-client compute';
my @started;

sub sh {
    my ($command) = @_;
    my $said = `$command 2>&1`;
    $? == 0 or BAIL_OUT("$command\n$said");
    return $said;
}

sub put {
    my ($path, $text) = @_;
    make_path($path =~ s{/[^/]*$}{}r);
    open my $file, '>', $path or BAIL_OUT("$path: $!");
    print {$file} $text;
    close $file or BAIL_OUT("$path: $!");
    return;
}

# A program that goes on, until there is what it makes.
sub start {
    my ($log, $ready, @command) = @_;
    my $pid = fork // BAIL_OUT("fork: $!");
    if (!$pid) {
        open STDOUT, '>', $log or POSIX::_exit(126);
        open STDERR, '>&', \*STDOUT or POSIX::_exit(126);
        exec @command or POSIX::_exit(127);
    }
    push @started, $pid;
    for (1 .. 300) {
        return if $ready->();
        sleep 0.2;
    }
    BAIL_OUT("@command: " . `tail -5 $log`);
}

END {
    local $?;
    kill 'TERM', @started;
    waitpid $_, 0 for @started;
}

# Its own file systems: an overlay cannot be on the tree's, and the runtimes want cgroups of version 2, if empty ones.
sh("mkdir -p $_ && mount -t tmpfs tmpfs $_") for qw(/tmp/runtimes /run /var/lib/containers /var/lib/docker /var/lib/containerd /etc/cdi /etc/docker), $door;
sh('while mountpoint -q /sys/fs/cgroup; do umount -R -l /sys/fs/cgroup; done; mount -t cgroup2 none /sys/fs/cgroup');

# The least that a program needs, with the loader's cache.
sh("mkdir -p $image/$libraries " . join ' ', map { "$image/$_" } qw(usr/lib64 usr/bin etc proc sys dev tmp run opt));
sh("ln -s usr/$_ $image/$_") for qw(lib lib64 bin);
sh("cp -L /lib64/ld-linux-x86-64.so.2 $image/usr/lib64/ && cp -L /$libraries/libc.so.6 /$libraries/libm.so.6 $image/$libraries/");
sh("/sbin/ldconfig -X -C $image/etc/ld.so.cache && cp build/cuda-test/remote-client $image/opt/");
sh("mkdir -p $door/guest && cp build/cuda-remote/libcuda.so.1 $door/guest/ && ln -s libcuda.so.1 $door/guest/libcuda.so");
sh("mkdir -p $volumes/run && cp -a $image/$libraries $volumes/libraries && cp -a $image/usr $volumes/usr");
make_path($guard =~ s{/[^/]*$}{}r);

my @mounts = map { { hostPath => $_->[0], containerPath => $_->[1], options => [qw(ro nosuid nodev bind)] } }
    [$guard, '/run/vgpu/cuda/web.sock'], [$guard, '/run/vgpu/cuda.sock'], map { ["$door/guest/$_", "$door/guest/$_"] } qw(libcuda.so.1 libcuda.so);
my @hooks = map { { hookName => 'createRuntime', path => $hook, args => ['vgpu-container-hook', @$_], env => ['LC_ALL=C.UTF-8'], timeout => 40 } }
    ['restore-mounts'], ['put-cuda-remote', $door];
put('/run/cdi/mdev-vgpu.json', encode_json({ cdiVersion => '0.5.0', kind => 'mdev-vgpu.org/slice',
    devices => [{ name => 'web', containerEdits => { mounts => \@mounts, hooks => \@hooks } }] }));
sh("ln -sfn /run /var/run") if !-e '/var/run/cdi';
put('/etc/docker/daemon.json', '{"features": {"cdi": true}, "iptables": false, "bridge": "none"}');

@ENV{qw(FAKE_CUDA_CONTENT FAKE_CUDA_TOTAL PODMAN_IGNORE_CGROUPSV1_WARNING HOME)} = (1, 2**30, 1, '/tmp/runtimes');
start('/tmp/runtimes/worker.log', sub { -S $guard }, "$top/build/cuda-test/vgpu-cuda-worker", '--listen', $guard, '--library', "$top/build/cuda-test/real/libcuda.so.1");
chmod 0666, $guard;
start('/tmp/runtimes/docker.log', sub { system('docker version >/dev/null 2>&1') == 0 }, 'dockerd');
sh("tar -C $image -cf - . | docker import - small");

my $device = '--rm --network none --log-driver none --device mdev-vgpu.org/slice=web';
my %run = (
    podman => sub { my ($options) = @_; return "podman run $device --cgroups=disabled --annotation run.oci.hooks.stderr=/dev/stderr $options --rootfs $image:O $program" },
    docker => sub { my ($options) = @_; return "docker run $device $options small $program" },
);
my $hard = '--read-only --tmpfs /run --tmpfs /tmp --user 1000:1000 --cap-drop ALL --security-opt no-new-privileges';

for my $runtime (sort keys %run) {
    my $computes = sub {
        my ($options, $what) = @_;
        my $said = `@{[ $run{$runtime}->($options) ]} 2>&1`;
        return is("$? $said", '0 ', "$runtime: $what");
    };
    $computes->('', 'a container computes');
    $computes->('--read-only', 'with --read-only');
    $computes->($hard, 'a hardened one, with tmpfs over what CDI has mounted');
    $computes->("-v $volumes/run:/run", 'with a volume there');
    $computes->("-v $volumes/libraries:/$libraries:ro", 'with the image\'s libraries on a volume that nobody writes to');
    is(sh("find $volumes/libraries -iname '*cuda*'"), '', "$runtime: nothing was written to the volume of libraries");
    $computes->("-v $volumes/usr:/usr", 'with all of /usr on one');
}

# A user's containers: in the namespace of the user's podman, and in one of their own in it.
my $home = '/home/computes';
sh("useradd -u 4711 computes && mkdir -p $home && mount -t tmpfs -o mode=0711 tmpfs $home && mkdir $home/run && cp -a $image $home/image && chown -R computes: $home");
for my $options ('', '--read-only', '--userns=keep-id', '--userns=keep-id --read-only --tmpfs /run') {
    my $as_user_podman = "cd $home && setpriv --reuid computes --regid computes --init-groups env HOME=$home XDG_RUNTIME_DIR=$home/run podman --log-level=error";
    my $text = `$as_user_podman run $device --cgroups=disabled --annotation run.oci.hooks.stderr=/dev/stderr $options --rootfs $home/image:O $program 2>&1`;
    is("$? $text", '0 ', "podman of a user ($options): a container computes");
}

# podman's containers of root with a user namespace of their own: their root is nobody on the host.
sh("tar -C $image -cf - . | podman import - small");
put("/etc/$_", "containers:1000000:1000000\n") for qw(subuid subgid);
for my $options ('', '--read-only', $hard, "-v $volumes/libraries:/$libraries:ro") {
    my $text = `podman run $device --cgroups=disabled --annotation run.oci.hooks.stderr=/dev/stderr --userns=auto $options localhost/small $program 2>&1`;
    is("$? $text", '0 ', "podman (--userns=auto $options): a container computes");
}

# Files of other vendors' devices beside ours, of which one is none.
put('/etc/cdi/net.json', encode_json({ cdiVersion => '0.8.0', kind => 'example.com/net',
    devices => [{ name => 'n0', containerEdits => { env => ['VGPU_GOVERNOR_SLICES=/x'], additionalGids => [992] } }] }));
put('/etc/cdi/broken.json', '{"cdiVersion": "0.5.0", "kind": "broken", "devices": []}');
for my $runtime (sort keys %run) {
    my $text = `@{[ $run{$runtime}->('') ]} 2>&1`;
    is($?, 0, "$runtime: beside other vendors' files, and one that is broken, it computes") or diag($text);
}
sh('rm /etc/cdi/*.json');

# crun makes the places before the volume is read-only; runc cannot.
sh("rm -rf $volumes/run && mkdir $volumes/run");
my $said = `@{[ $run{docker}->("-v $volumes/run:/run:ro") ]} 2>&1`;
isnt($?, 0, 'docker: over a volume that nobody can write to there is no place, and the container is refused');
like($said, qr{/run/vgpu/\S+, which the slice needs, is covered by what the container has mounted on /run; mount nothing there}, 'docker: the refusal names the mount');

# In a VM the guest's package makes CDI's file. The worker's socket stands for the vGPU, and /dev/null's number for its node.
sh("rm /run/cdi/mdev-vgpu.json && rm -r $door/guest && mkdir -p $door/guest-cuda /run/dri && mknod /run/dri/renderD128 c 1 3");
sh("cp build/cuda-remote/libcuda.so.1 build/cuda-remote/libnvidia-ml.so.1 build/cuda-remote/vgpu-guest-cdi $hook $door/guest-cuda/");
sh("$door/guest-cuda/vgpu-guest-cdi --node /run/dri/renderD128");
for my $name (qw(renderD128 all)) {
    $device = "--rm --network none --log-driver none --device mdev-vgpu.org/cuda=$name -v $guard:/run/vgpu/cuda.sock";
    for my $runtime (sort keys %run) {
        my $out = `@{[ $run{$runtime}->('--read-only --user 1000:1000 --cap-drop ALL') ]} 2>&1`;
        is("$? $out", '0 ', "$runtime in a VM: a container of $name computes");
    }
}
sh("$door/guest-cuda/vgpu-guest-cdi");
ok(!-e '/run/cdi/mdev-vgpu-cuda.json', 'without a vGPU there is no file');

done_testing();
