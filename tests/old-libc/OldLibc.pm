# SPDX-License-Identifier: MIT
# A slice of a GPU that has an arbiter, and the libraries that are loaded into a container's programs.
package OldLibc;
use strict;
use warnings;
use Cwd;
use Exporter 'import';
use File::Path 'make_path';
use File::Temp;
use POSIX ();
use Time::HiRes 'sleep';

our @EXPORT = qw($build $layer $guarded $member $remote start_slice in_slice start_worker with_worker);

our $build = getcwd() . '/build';
our $layer = "$build/governor/vulkan/libvgpu_governor.so";
our $guarded = "$build/governor/vulkan/libvgpu_guarded.so";
our $remote = "$build/cuda-remote/libcuda.so.1";
our $member = "$build/governor/libvgpu-member.so.1";
my $root = File::Temp->newdir;
my $socket = "$root/run/vgpu/slices/one/governor.sock";
my ($arbiter, $worker);
my $owner = $$;

sub put {
    my ($path, $text) = @_;
    open my $file, '>', $path or die "$path: $!\n";
    print {$file} $text;
    close $file or die "$path: $!\n";
    return;
}

sub start_slice {
    my $folder = "$root/run/vgpu/governor/gpu";
    make_path("$folder/slices");
    put("$folder/gpu.conf", "[gpu]\nvram=1073741824\npolicy=shares\n");
    put("$folder/slices/one.conf", "[slice]\nvram=268435456\nweight=100\n");
    $arbiter = fork // die "fork: $!\n";
    exec("$build/governor/vgpu-arbiter", "--root=$root", 'gpu') || POSIX::_exit(127) if !$arbiter;
    for (1 .. 200) {
        return if -S $socket;
        sleep 0.1;
    }
    die "the arbiter has no socket\n";
}

# A command's output, both ways, and its status. $at: the slice's socket instead of the real one.
sub in_slice {
    my ($at, @command) = @_;
    local @ENV{qw(VGPU_GOVERNOR VGPU_GOVERNOR_REQUIRED VGPU_GOVERNOR_SOCKET)} = (1, 1, $at // $socket);
    my $text = `@command 2>&1`;
    return ($text, $? & 127 ? 128 + ($? & 127) : $? >> 8);
}

# A worker with the fake driver and no slice: its socket.
sub start_worker {
    my $path = "$root/cuda.sock";
    $worker = fork // die "fork: $!\n";
    if (!$worker) {
        @ENV{qw(FAKE_CUDA_CONTENT FAKE_CUDA_TOTAL)} = (1, 2**30);
        exec("$build/cuda-test/vgpu-cuda-worker", '--listen', $path, '--library', "$build/cuda-test/real/libcuda.so.1") || POSIX::_exit(127);
    }
    for (1 .. 200) {
        return $path if -S $path;
        sleep 0.1;
    }
    die "the worker has no socket\n";
}

# As in_slice().
sub with_worker {
    my ($path, @command) = @_;
    local $ENV{VGPU_CUDA_SOCKET} = $path;
    my $text = `@command 2>&1`;
    return ($text, $? & 127 ? 128 + ($? & 127) : $? >> 8);
}

END {
    local $?;
    for my $started ($$ == $owner ? grep { defined } $arbiter, $worker : ()) {
        kill 'TERM', $started;
        waitpid $started, 0;
    }
}

1;
