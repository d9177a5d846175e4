# SPDX-License-Identifier: MIT
# The places of make bench-guarded: the driver itself, and two servers in front of it; what a client of each measures,
# and what the processes of each do meanwhile.
package Bench::Guarded;

use strict;
use warnings;

use File::Temp;
use GuardLive ();
use IPC::Open2;
use JSON::PP ();
use List::Util ();
use Time::HiRes 'sleep';

my $driver = '/usr/share/vulkan/icd.d/lvp_icd.json';
my %units;

sub new {
    my ($class) = @_;
    my $self = bless { dir => File::Temp->newdir, servers => {} }, $class;
    my %shim = -e '/dev/udmabuf' ? () : (LD_PRELOAD => `pwd` =~ s/\n//r . '/build/guard/udmabuf-shim.so');
    my $socket = "$self->{dir}/vtest.sock";
    $self->{servers}{ours} = { process => GuardLive::start_guard(), socket => $GuardLive::socket };
    $self->{servers}{virgl_test_server} = {
        process => GuardLive::start('vtest', { %shim, VK_DRIVER_FILES => $driver, MESA_SHADER_CACHE_DISABLE => 'true' },
            'virgl_test_server', '--venus', '--no-virgl', '--socket-path', $socket),
        socket => $socket,
    };
    GuardLive::within(30, sub { -S $socket }) or die "virgl_test_server does not listen\n";
    $self->{light} = $self->samples('native', 'calibrate')->{calibrate}[0];
    return $self;
}

sub stop {
    my ($self) = @_;
    kill 'TERM', map { $_->{process}{pid} } values $self->{servers}->%*;
    return;
}

sub unit { return $units{ $_[1] } }

sub client_version {
    my ($self) = @_;
    my ($name) = grep { /^virtio_icd/ } map { s{.*/}{}r } glob "$ENV{GUARD_MESA}/usr/share/vulkan/icd.d/*.json";
    open my $file, '<', "$ENV{GUARD_MESA}/usr/share/vulkan/icd.d/$name" or die "no Venus in $ENV{GUARD_MESA}\n";
    local $/;
    return { vulkan => JSON::PP::decode_json(<$file>)->{ICD}{api_version} };
}

# Starts vk-bench in a place, with pipes to and from it.
sub client {
    my ($self, $place, @arguments) = @_;
    my @command = ('build/bench/vk-bench', $self->{light} ? ('--light', int $self->{light}) : (), @arguments);
    local @ENV{qw(MESA_SHADER_CACHE_DISABLE VK_DRIVER_FILES VN_DEBUG VTEST_SOCKET_NAME)} = ('true', $driver, '', '');
    if ($place ne 'native') {
        ($ENV{VK_DRIVER_FILES}, @command) = GuardLive::client_command(@command);
        @ENV{qw(VN_DEBUG VTEST_SOCKET_NAME)} = ('vtest', $self->{servers}{$place}{socket});
    }
    my $pid = open2(my $out, my $in, @command);
    return { pid => $pid, out => $out, in => $in };
}

sub end {
    my ($client) = @_;
    waitpid $client->{pid}, 0;
    die "vk-bench ended with status $?\n" if $?;
    return;
}

sub read_row {
    my ($line) = @_;
    my $row = JSON::PP::decode_json($line);
    $units{ $row->{row} } = $row->{unit};
    return $row;
}

# Samples by row.
sub samples {
    my ($self, $place, @rows) = @_;
    my $client = $self->client($place, @rows);
    my %samples;
    while (my $line = readline $client->{out}) {
        my $row = read_row($line);
        $samples{ $row->{row} } = $row->{samples};
    }
    end($client);
    return \%samples;
}

# The processes of a place by what they are: each has started the next. The one that waits for the next client counts as
# a session, too, and does nothing.
my @chain = ('server', 'session', 'render server', 'worker');

sub roles {
    my ($self, $place, $client) = @_;
    my %roles = ($client->{pid} => 'client');
    return \%roles if $place eq 'native';
    my @level = $self->{servers}{$place}{process}{pid};
    for my $role (@chain) {
        @roles{@level} = ($role) x @level;
        @level = map { split ' ', `cat /proc/$_/task/*/children` } @level;
    }
    return \%roles;
}

# Of all threads: how often they slept, how often they were preempted, and microseconds of processor time.
sub switches {
    my ($pid) = @_;
    my %found = (sleeps => 0, preempted => 0, cpu => 0);
    for my $task (glob "/proc/$pid/task/*") {
        open my $file, '<', "$task/status" or next;
        my $text = do { local $/; readline $file };
        $found{sleeps} += $1 if $text =~ /^voluntary_ctxt_switches:\s+(\d+)/m;
        $found{preempted} += $1 if $text =~ /^nonvoluntary_ctxt_switches:\s+(\d+)/m;
        open $file, '<', "$task/schedstat" or next;
        $found{cpu} += (split ' ', readline $file)[0] / 1000;
    }
    return \%found;
}

sub expect {
    my ($client, $word) = @_;
    my $line = readline($client->{out}) // '';
    $line eq "$word\n" or die "vk-bench said \"$line\", not $word\n";
    return;
}

sub go_on { my ($client) = @_; $client->{in}->print("\n"); $client->{in}->flush; return }

# Runs a row between two looks; returns how many samples it had.
sub run_row {
    my ($client, $before, $after) = @_;
    expect($client, 'begin');
    $before->();
    go_on($client);
    my $row = read_row(scalar readline $client->{out});
    expect($client, 'end');
    $after->();
    go_on($client);
    end($client);
    return scalar $row->{samples}->@*;
}

# Records the system calls of processes, which costs them little: a tracer that stops them would change what is counted.
sub trace {
    my ($file, @pids) = @_;
    my $perf = GuardLive::start('perf', {}, 'perf', 'record', '-q', '-m', '4M', '-e', 'raw_syscalls:sys_enter', '-o', $file,
        '-p', join ',', @pids);
    # It says nothing when it has begun, but has an event open for each thread then.
    GuardLive::within(30, sub { events($perf->{pid}) >= @pids }) or die 'perf does not begin: ', GuardLive::output($perf);
    sleep 0.3;
    return sub {
        kill 'INT', $perf->{pid};
        GuardLive::finish($perf, 60);
        die 'perf: ', GuardLive::output($perf) if GuardLive::output($perf) =~ /lost|error/i;
    };
}

sub events { return scalar grep { (readlink // '') =~ /perf_event/ } glob "/proc/$_[0]/fd/*" }

my %names;

sub name {
    my ($number) = @_;
    if (!%names) {
        open my $file, '<', '/usr/include/x86_64-linux-gnu/asm/unistd_64.h' or die "no numbers of system calls: $!\n";
        while (my $line = readline $file) { $names{$2} = $1 if $line =~ /^#define __NR_(\w+)\s+(\d+)/ }
    }
    return $names{$number} // $number;
}

# By process and call.
sub calls {
    my ($file) = @_;
    my %calls;
    open my $script, '-|', "perf script -i $file -F pid,tid,event,trace 2>/dev/null" or die "perf script: $!\n";
    while (my $line = readline $script) { $calls{$1}{ name($2) }++ if $line =~ m{^\s*(\d+)/\d+.*NR (\d+) } }
    return \%calls;
}

# How many samples a row had, and what each process did for all of them: switches, then, in a second run, calls.
sub counted {
    my ($self, $place, $row, $repeat) = @_;
    my @arguments = ('--step', '--repeat', $repeat, $row);
    my ($roles, %before, %found);
    my $client = $self->client($place, @arguments);
    my $number = run_row($client, sub {
        $roles = $self->roles($place, $client);
        %before = map { $_ => switches($_) } keys %$roles;
    }, sub {
        for my $pid (keys %$roles) {
            my $after = switches($pid);
            $found{ $roles->{$pid} }{$_} += $after->{$_} - $before{$pid}{$_} for keys %$after;
        }
    });
    $self->gone($place);

    my $file = "$self->{dir}/perf.data";
    my $end;
    $client = $self->client($place, @arguments);
    run_row($client, sub {
        $roles = $self->roles($place, $client);
        $end = trace($file, keys %$roles);
    }, sub { $end->() });
    my $calls = calls($file);
    for my $pid (keys %$roles) {
        my $of = $calls->{$pid} // {};
        $found{ $roles->{$pid} }{calls} += List::Util::sum0(values %$of);
        $found{ $roles->{$pid} }{"call $_"} += $of->{$_} for keys %$of;
    }
    $self->gone($place);
    return ($number, \%found);
}

# The next client's processes must be the only ones.
sub gone {
    my ($self, $place) = @_;
    return if $place eq 'native';
    my $server = $self->{servers}{$place}{process}{pid};
    GuardLive::within(20, sub { !{ GuardLive::below($server) }->%* }) or die "processes of $place stay behind\n";
    return;
}

1;
