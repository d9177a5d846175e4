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

our @EXPORT = qw($build $layer $guarded $member start_slice in_slice);

our $build = getcwd() . '/build';
our $layer = "$build/governor/vulkan/libvgpu_governor.so";
our $guarded = "$build/governor/vulkan/libvgpu_guarded.so";
our $member = "$build/governor/libvgpu-member.so.1";
my $root = File::Temp->newdir;
my $socket = "$root/run/vgpu/slices/one/governor.sock";
my $arbiter;
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

END {
    local $?;
    if ($arbiter && $$ == $owner) {
        kill 'TERM', $arbiter;
        waitpid $arbiter, 0;
    }
}

1;
