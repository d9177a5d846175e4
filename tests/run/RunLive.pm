# SPDX-License-Identifier: MIT
# A host without the kernel module and without systemd: the real vgpud on a bus of its own, vgpu-arbiter, and the
# governor's layer as it is installed, on lavapipe.
package RunLive;
use strict;
use warnings;
use Cwd;
use Exporter 'import';
use File::Path 'make_path';
use File::Temp;
use IO::Socket::UNIX;
use POSIX ();
use Test::More;
use Time::HiRes 'sleep', 'time';

our @EXPORT = qw($gpu $build $root $vgpuctl $fill start forget slurp within output_of start_host start_vgpud kill_vgpud
    start_meter kill_meter start_guard vgpud_pid metrics nothing_to_complain_of);

our $gpu = 'soft:live';
our $build = getcwd() . '/build';
our $root = File::Temp->newdir;
our $vgpuctl = "$build/host-agent/vgpuctl";
our $fill = "$build/run/t-fill";
my $test = $$;
my ($vgpud, $meter, @pids);

sub put {
    my ($path, $text) = @_;
    make_path("$root$path" =~ s{/[^/]+$}{}r);
    open my $file, '>', "$root$path" or die "$path: $!\n";
    print $file $text;
    close $file;
    return;
}

sub slurp {
    my ($path) = @_;
    open my $file, '<', $path or return '';
    local $/ = undef;
    return <$file> // '';
}

# Starts a program, its output in $root/NAME.log; returns its process, which is ended with the test.
sub start {
    my ($name, @command) = @_;
    my $pid = fork // die "fork: $!\n";
    if (!$pid) {
        open STDOUT, '>>', "$root/$name.log" or POSIX::_exit(127);
        open STDERR, '>&', \*STDOUT or POSIX::_exit(127);
        exec @command or POSIX::_exit(127);
    }
    push @pids, $pid;
    return $pid;
}

# It has been waited for.
sub forget {
    my ($pid) = @_;
    @pids = grep { $_ != $pid } @pids;
    return;
}

# Whether $check becomes true within $limit seconds.
sub within {
    my ($limit, $check) = @_;
    my $until = time + $limit;
    until ($check->()) {
        return 0 if time > $until;
        sleep 0.05;
    }
    return 1;
}

# A command's output, both ways, and its status as the shell has it.
sub output_of {
    my $text = `@_ 2>&1`;
    return ($text, $? & 127 ? 128 + ($? & 127) : $? >> 8);
}

sub start_vgpud {
    $vgpud = start('vgpud', "$build/host-agent/vgpud", "--root=$root");
    within(20, sub { (output_of("$vgpuctl gpu list"))[0] =~ /\Q$gpu\E +shared/ })
        or BAIL_OUT('vgpud: ' . slurp("$root/vgpud.log"));
    return;
}

# It serves metrics as soon as it knows what vgpud has.
sub start_meter {
    unlink "$root/run/vgpu/metrics";
    $meter = start('meter', "$build/host-agent/vgpu-meter", "--root=$root");
    within(20, sub { metrics() =~ /vgpu_build_info/ }) or BAIL_OUT('meter: ' . slurp("$root/meter.log"));
    return;
}

# systemd would start it for vgpud. Without the governor: its keeper needs dma-bufs, and the tree has stand-ins for them.
sub start_guard {
    my ($uuid) = @_;
    my $dir = "$root/run/vgpu/guard";
    my @own = -e '/dev/udmabuf' ? () : ("LD_PRELOAD=$build/guard/udmabuf-shim.so");
    start('guard', "$build/engine/vgpu-guard", "--config=$dir/$uuid.conf", "--socket=$dir/$uuid/vtest.sock", '--no-landlock',
        map { "--setenv=$_" } @own, "NODEVICE_SELECT=$ENV{NODEVICE_SELECT}");
    within(60, sub { slurp("$root/guard.log") =~ /using Vulkan driver/ && -S "$dir/$uuid/vtest.sock" })
        or BAIL_OUT('guard: ' . slurp("$root/guard.log"));
    chmod 0666, "$dir/$uuid/vtest.sock";
    return;
}

# What Prometheus would get.
sub metrics {
    my $socket = IO::Socket::UNIX->new("$root/run/vgpu/metrics") or return '';
    print $socket "GET /metrics HTTP/1.0\r\n\r\n";
    local $/ = undef;
    return <$socket> // '';
}

sub vgpud_pid { return $vgpud }

sub kill_one {
    my ($pid, $signal) = @_;
    kill $signal, $pid;
    waitpid $pid, 0;
    forget($pid);
    return;
}

sub kill_vgpud { return kill_one($vgpud, @_) }
sub kill_meter { return kill_one($meter, @_) }

# With one GPU in software that has so much memory, as gpus.conf writes it.
sub start_host {
    my ($vram) = @_;
    put('/etc/vgpu/gpus.conf', "[gpu $gpu]\nmode=shared\nvram=$vram\n");
    put('/etc/vgpu/types.d/10.conf', "[type vgpu-half]\nvram=1/2\n");
    put('/usr/share/vulkan/implicit_layer.d/VkLayer_vgpu_governor.json',
        qq({"layer": {"library_path": "$build/governor/vulkan/libvgpu_governor.so"}}));
    # Claims go by the processes that there are.
    symlink '/proc', "$root/proc" or die "proc: $!\n";
    $ENV{DBUS_SYSTEM_BUS_ADDRESS} = "unix:path=$root/bus";
    $ENV{VK_DRIVER_FILES} = '/usr/share/vulkan/icd.d/lvp_icd.json';
    $ENV{VK_IMPLICIT_LAYER_PATH} = "$build/governor/vulkan";
    $ENV{NODEVICE_SELECT} = 1;
    start('bus', 'dbus-daemon', '--session', '--nofork', '--nopidfile', "--address=$ENV{DBUS_SYSTEM_BUS_ADDRESS}");
    within(20, sub { -S "$root/bus" }) or BAIL_OUT('no bus');
    put('/etc/vgpu/vgpud.conf', "[metrics]\nlisten=unix:/run/vgpu/metrics\n");
    start_vgpud();
    start_meter();
    # systemd would start it, for vgpud.
    start('arbiter', "$build/governor/vgpu-arbiter", "--root=$root", $gpu);
    return;
}

sub nothing_to_complain_of {
    my $log = slurp("$root/vgpud.log") . slurp("$root/meter.log");
    return unlike($log, qr/CRITICAL|ERROR|Sanitizer/, 'vgpud and vgpu-meter have nothing to complain of');
}

END {
    local $?;
    if ($$ == $test) {
        kill 'TERM', @pids if @pids;
        waitpid $_, 0 for @pids;
    }
}

1;
