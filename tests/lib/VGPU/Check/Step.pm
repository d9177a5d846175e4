# SPDX-License-Identifier: MIT
# A step is one command that runs one or more tests of the plan, in a process group of its own. Its output is in
# STEP.log and each test file's result in STEP.jsonl, both in the run's folder.
package VGPU::Check::Step;

use strict;
use warnings;

use POSIX qw(WNOHANG setpgid);
use JSON::PP;

# The exit status of the rig's own programs and ours if the rig failed, and not the tests.
use constant RIG_FAILED => 75;

my @tree = qw(tests/rig/rig build --);
my @make = (@tree, qw(make --no-print-directory));

# How each step runs the tests that are named after the colon. command: the command. limit: after this many seconds it
# counts as hung. where: its name in tests/skips; by default the step's kind. files: those that must have run.
my %commands = (
    unit => sub { return (command => [@make, 'unit'], limit => 3600) },
    'unit-device-clock' => sub { return (command => [@make, 'unit-device-clock'], limit => 1800) },
    'unit-tsan' => sub { return (command => [@make, 'unit-tsan'], limit => 1800) },
    'unit-alone' => sub { return (command => [@make, 'unit-alone'], limit => 1800) },
    check => sub { return (command => ['tests/prove', '-v', 'tests/check.t'], limit => 300) },
    cuda => sub { return (command => [@make, 'cuda'], limit => 900) },
    'cuda-on-card' => sub { return (command => [@make, 'cuda-on-card-test'], limit => 900) },
    'cuda-budgets' => sub { return (command => [@make, 'cuda-budgets'], limit => 900) },
    fuzz => sub { return (command => [@make, 'fuzz'], limit => 1800) },
    rig => sub { return (command => ['tests/prove', '-v', 'tests/rig/rig.t'], limit => 1800) },
    module => sub { return (command => ['tests/prove', '-v', 'tests/module.t', '::', @_], limit => 1800, where => $_[0]) },
    dkms => sub { return (command => ['make', '--no-print-directory', 'check-dkms', "KERNEL=$_[0]"], limit => 1800) },
    driver => sub { return (command => ['tests/driver/check-driver', '--kernel', @_], limit => 5400, where => $_[0]) },
    'driver-iommufd' => sub {
        return (command => ['tests/driver/check-driver', '--iommufd', '--kernel', @_], limit => 5400, where => $_[0]);
    },
    'driver-pci' => sub {
        return (command => ['tests/driver/check-driver', '--gpu', 'pci', '--kernel', $_[0], qw(t-type1-peer long-limit)], limit => 1800, where => $_[0]);
    },
    system => sub {
        return (command => ['tests/system/check', map { "tests/system/$_.t" } @_], limit => 4 * 3600,
            files => [map { "tests/system/$_.t" } @_]);
    },
    guests => sub {
        my @files = map { "tests/system/$_.t" } $_[0] =~ /iommufd/ ? 'iommufd/save' : qw(10-attach 30-engine-dies);
        return (command => ['tests/system/check', '--kernel', $_[0], @files], limit => 3 * 3600, where => $_[0], files => \@files);
    },
    page => sub { return (command => ['tests/page/check'], limit => 3600, files => [glob 'tests/page/*.t']) },
    fleet => sub { return (command => ['tests/fleet/check'], limit => 1800, files => [glob 'tests/fleet/t-*']) },
    'fleet-long' => sub { return (command => ['tests/fleet/check', '--long'], limit => 1800, files => [glob 'tests/fleet/long-*']) },
    kubernetes => sub { return (command => ['tests/kubernetes/check'], limit => 900, files => [glob 'tests/kubernetes/t-*']) },
    'kubernetes-long' => sub { return (command => ['tests/kubernetes/check', '--long'], limit => 900, files => [glob 'tests/kubernetes/long-*']) },
    'kubernetes-upstream' => sub { return (command => ['tests/kubernetes/upstream/check'], limit => 2400) },
    demo => sub { return (command => ['tests/prove', '--merge', '-v', 'tests/demo.t'], limit => 5400, files => ['tests/demo.t']) },
    opengl => sub { return (command => ['tests/guard/opengl-check'], limit => 900, files => ['tests/guard/opengl.t']) },
    'guard-rings' => sub { return (command => [@make, 'guard-rings'], limit => 900) },
    'old-libc' => sub { return (command => ['tests/old-libc/check'], limit => 900, files => [glob 'tests/old-libc/*.t']) },
    runtimes => sub { return (command => ['tests/runtimes/check'], limit => 900, files => [glob 'tests/runtimes/*.t']) },
    packages => sub { return (command => ['tests/packages/check', @_], limit => 7200) },
);

sub is_known { my ($kind) = @_; return exists $commands{$kind} }

sub lane { my ($kind) = @_; return $kind =~ /^(system|guests|packages|demo|fleet)$/ ? 'system' : $kind eq 'unit-alone' ? 'alone' : 'tree' }

# Steps of tests, in the order of the tests; the tests of one step that can run several are one.
sub steps_of {
    my (@tests) = @_;
    my (@steps, %several);
    for my $test (@tests) {
        my ($kind, $which) = split /:/, $test->{name}, 2;
        my $step = $kind =~ /^(system|packages)$/ ? $several{$kind} : undef;
        if (!$step) {
            $step = bless { name => $test->{name} =~ tr/:/-/r, kind => $kind, which => [], tests => [] }, __PACKAGE__;
            $step->{name} = $kind if $kind =~ /^(system|packages)$/;
            $several{$kind} = $step;
            push @steps, $step;
        }
        push @{ $step->{which} }, $which // ();
        push @{ $step->{tests} }, $test;
    }
    $_->settle for @steps;
    return @steps;
}

# A step that is not a test: it builds what the tests need.
sub build {
    my $self = bless { name => 'build', kind => 'build', tests => [] }, __PACKAGE__;
    $self->{limit} = 5400;
    $self->{command} = [@tree, 'sh', '-c', 'exec make --no-print-directory -j$(nproc) --output-sync=target KVER=$(ls /lib/modules | head -n 1) tests-build'];
    return $self;
}

sub settle {
    my ($self) = @_;
    my $make = $commands{ $self->{kind} } // die "tests/plan: no step is called $self->{kind}\n";
    my %made = $make->(@{ $self->{which} });
    $self->{where} = $made{where} // $self->{kind};
    @$self{qw(command limit files)} = @made{qw(command limit files)};
    return;
}

sub log_file { my ($self) = @_; return "$self->{dir}/$self->{name}.log" }
sub results_file { my ($self) = @_; return "$self->{dir}/$self->{name}.jsonl" }

sub begin {
    my ($self, $dir) = @_;
    $self->{dir} = $dir;
    unlink $self->results_file;
    $self->{began} = time;
    $self->{pid} = fork // die "fork: $!\n";
    if (!$self->{pid}) {
        setpgid(0, 0);
        open STDIN, '<', '/dev/null' or POSIX::_exit(126);
        open STDOUT, '>', $self->log_file or POSIX::_exit(126);
        open STDERR, '>&', \*STDOUT or POSIX::_exit(126);
        $ENV{VGPU_RESULTS} = $self->results_file;
        exec { $self->{command}[0] } @{ $self->{command} } or POSIX::_exit(127);
    }
    return;
}

# Whether it has ended; ends it once it exceeds its limit.
sub ended {
    my ($self) = @_;
    return 1 if defined $self->{status};
    if (waitpid($self->{pid}, WNOHANG) == $self->{pid}) {
        $self->{status} = $? & 127 ? 128 + ($? & 127) : $? >> 8;
        $self->{seconds} = time - $self->{began};
        return 1;
    }
    if (time - $self->{began} > $self->{limit}) {
        $self->{hung} = 1;
        kill $self->{killed}++ ? 'KILL' : 'TERM', -$self->{pid};
        sleep 5;
    }
    return 0;
}

sub stop {
    my ($self) = @_;
    return if !$self->{pid} || defined $self->{status};
    kill 'TERM', -$self->{pid};
    for (1 .. 300) {
        return if $self->ended;
        select undef, undef, undef, 0.1;
    }
    kill 'KILL', -$self->{pid};
    return;
}

# prove's results since the last call.
sub new_results {
    my ($self) = @_;
    open my $in, '<', $self->results_file or return;
    seek $in, $self->{read} // 0, 0;
    my @new;
    while (my $line = <$in>) {
        last if $line !~ /\n\z/;
        $self->{read} = tell $in;
        push @new, decode_json($line);
    }
    push @{ $self->{results} }, @new;
    return @new;
}

# Those of its tests that are not known to have ended. A step of several has a file of that name for each.
sub tests_without_results {
    my ($self) = @_;
    my %ran = map { $_->{file} => 1 } @{ $self->{results} // [] };
    return grep { !$ran{ 'tests/' . ($_->{name} =~ tr{:}{/}r) . '.t' } } @{ $self->{tests} };
}

1;
