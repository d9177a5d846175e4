# SPDX-License-Identifier: MIT
# The real vgpu-guard on lavapipe, its processes, and clients of it.
package GuardLive;
use strict;
use warnings;
use Exporter 'import';
use File::Temp;
use List::Util;
use POSIX ':sys_wait_h';
use Test::More;
use Time::HiRes 'sleep', 'time';

our @EXPORT = qw($dir $socket $small start output within ended finish client compute computing rounds goes_on stop below
    descriptors spare worker start_guard nothing_left cached);

our $dir = File::Temp->newdir;
our $socket = "$dir/vtest.sock";
our $small = '--size 65536';
my $shim = 'build/guard/udmabuf-shim.so';
my @own = -e '/dev/udmabuf' ? () : ('--setenv=LD_PRELOAD=' . `pwd` =~ s/\n//r . "/$shim");

# A test that dies leaves nobody behind who computes for ever.
my @started;
END { my $status = $?; kill 'KILL', map { $_->{pid} } grep { !ended($_) } @started; $? = $status }

# Starts a program with its output in a file; returns it.
sub start {
    my ($name, $env, @command) = @_;
    my $pid = fork // die "fork: $!\n";
    if (!$pid) {
        open STDOUT, '>', "$dir/$name" or die;
        open STDERR, '>&', \*STDOUT or die;
        @ENV{keys %$env} = values %$env;
        exec @command or POSIX::_exit(127);
    }
    push @started, { pid => $pid, log => "$dir/$name", name => $name };
    return $started[-1];
}

sub output {
    my ($program) = @_;
    open my $file, '<', $program->{log} or return '';
    local $/;
    return <$file> // '';
}

# Whether $check becomes true within $limit seconds.
sub within {
    my ($limit, $check) = @_;
    my $until = time + $limit;
    until ($check->()) {
        return 0 if time > $until;
        sleep 0.1;
    }
    return 1;
}

sub ended {
    my ($program) = @_;
    return 1 if defined $program->{status};
    return 0 if waitpid($program->{pid}, WNOHANG) != $program->{pid};
    $program->{status} = $?;
    return 1;
}

sub finish {
    my ($program, $limit) = @_;
    return $program->{status} if within($limit, sub { ended($program) });
    kill 'KILL', $program->{pid};
    within(5, sub { ended($program) });
    return -1;
}

# Where clients have their C library and Mesa from, by GUARD_MESA=DIR: the tree of another Debian.
my $mesa = $ENV{GUARD_MESA} // '';
my $libraries = "$mesa/usr/lib/x86_64-linux-gnu";
my @loader = $mesa ? ("$libraries/ld-linux-x86-64.so.2", '--library-path', $libraries) : ();

# Venus' manifest, and how a program is run with its libraries.
sub client_command { return ("$mesa/usr/share/vulkan/icd.d/virtio_icd.json", @loader, @_) }

# One of Mesa's own clients: a program of tests/guest.
sub client {
    my ($name, $env, @command) = @_;
    (my $manifest, @command) = client_command(@command);
    return start($name, { %$env, VN_DEBUG => 'vtest', VTEST_SOCKET_NAME => $socket, VK_DRIVER_FILES => $manifest }, @command);
}

sub compute {
    my ($name, @options) = @_;
    return client($name, {}, 'build/guest/vk-compute', @options);
}

# One that continues until it is stopped, at its first result.
sub computing {
    my ($name) = @_;
    my $job = compute($name, '--forever', split ' ', $small);
    within(60, sub { output($job) =~ /^OK round 1:/m || ended($job) });
    return $job;
}

sub rounds { return scalar(() = output($_[0]) =~ /^OK round/mg) }

# It has more results than when this was called.
sub goes_on {
    my ($job) = @_;
    my $before = rounds($job);
    return within(30, sub { rounds($job) > $before + 1 }) && !ended($job);
}

sub stop {
    my ($job) = @_;
    kill 'KILL', $job->{pid};
    return finish($job, 5);
}

# Processes below $pid: pid => command. Not the one that waits for the next client, nor what is below it.
sub below {
    my ($pid) = @_;
    my %all;
    for my $child (split ' ', `cat /proc/$pid/task/*/children 2>/dev/null`) {
        open my $file, '<', "/proc/$child/comm" or next;
        chomp(my $name = <$file> // '');
        next if $name eq 'vgpu-spare';
        %all = (%all, $child => $name, below($child));
    }
    return %all;
}

# The process that waits for the next client, once its render server runs.
sub spare {
    my ($guard) = @_;
    my $found;
    within(15, sub {
        ($found) = grep { `cat /proc/$_/comm 2>/dev/null` eq "vgpu-spare\n" } split ' ', `cat /proc/$guard->{pid}/task/*/children`;
        return $found && below($found);
    });
    return $found;
}

sub descriptors { return scalar(my @all = glob "/proc/$_[0]/fd/*") }

# The render worker of the only session: the last of the chain session, render server, worker.
sub worker {
    my %all = below($_[0]);
    for my $server (grep { $all{$_} =~ /^virgl_render/ } keys %all) {
        my %workers = below($server);
        return (keys %workers)[0] if %workers;
    }
    return undef;
}

# With its options besides.
sub start_guard {
    my (@options) = @_;
    # Without it clients would fail, with an error that names something else.
    die "$shim is missing, and this machine has no /dev/udmabuf; \"make check-guard\" builds it\n" if @own && !-e $shim;
    unlink $socket, "$dir/guard";
    mkdir "$dir/shaders";
    my $guard = start('guard', {}, 'build/engine/vgpu-guard', '--gpu=soft:live', "--socket=$socket", '--no-landlock',
        "--shader-cache=$dir/shaders", @own, @options);
    within(60, sub { output($guard) =~ /using Vulkan driver/ && -S $socket });
    return $guard;
}

# Bytes of compiled shaders.
sub cached { return List::Util::sum0(split /\n/, `find $dir/shaders -type f -printf '%s\\n' 2>/dev/null`) }

sub nothing_left {
    my ($guard, $descriptors) = @_;
    my $gone = within(15, sub { !{ below($guard->{pid}) }->%* && descriptors($guard->{pid}) == $descriptors });
    diag(join ' ', below($guard->{pid}), `ls -l /proc/$guard->{pid}/fd`) if !$gone;
    return $gone;
}

1;
