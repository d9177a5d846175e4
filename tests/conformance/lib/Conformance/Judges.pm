# SPDX-License-Identifier: MIT
# The judging programs, and how their output is read: as points, a hash from a point's name to pass, fail or skip.
package Conformance::Judges;

use strict;
use warnings;

# A point of each.
our $ends_well = 'it ends well';

# In the order in which they are run, the quick ones first. limit: seconds in a place, for a program that hangs. Under
# emulation a guest needs minutes for what takes seconds elsewhere.
our @names = qw(vulkaninfo vkmark test-opt test-backend-ops clinfo piglit clpeak);

my %judges = (
    vulkaninfo => { limit => 300, package => 'vulkan-tools', subset => 'the device and its extensions', read => \&vulkaninfo },
    vkmark => { limit => 600, package => 'vkmark', subset => 'each scene of `scenes`', read => \&vkmark },
    'test-opt' => { limit => 900, package => 'llama.cpp-tests', subset => 'its Vulkan backend', read => \&test_opt },
    'test-backend-ops' => { limit => 1500, package => 'llama.cpp-tests', subset => 'small cases of each operation (`Cases.pm`)',
        read => \&backend_ops },
    clinfo => { limit => 600, package => 'clinfo', subset => 'the device is found', read => \&clinfo },
    piglit => { limit => 1200, package => 'piglit', subset => 'the OpenCL programs of `piglit`', read => \&piglit },
    clpeak => { limit => 900, package => 'clpeak', subset => '`--kernel-latency`', read => \&clpeak },
);

sub get { my ($name) = @_; return $judges{$name} // die "there is no judge $name: @names\n" }

# $name's output as points, with its exit status as one more: a program may be right in each of them and die then. If it
# exits with an error because points failed, these points say so already.
sub points {
    my ($name, $text, $status) = @_;
    $text =~ s/\e\[[\d;]*m//g;
    $text =~ s/\r//g;
    my $points = $judges{$name}{read}->($text);
    my $failed = grep { $_ eq 'fail' } values %$points;
    $points->{$ends_well} = $status == 0 || ($status == 1 && $failed) ? 'pass' : 'fail';
    return $points;
}

# The first device is judged by all programs. vulkaninfo lists extensions of a device under a line with their number.
sub vulkaninfo {
    my ($text) = @_;
    my %points = ('Venus is found' => $text =~ /deviceName\s*=.*Venus/ ? 'pass' : 'fail');
    my ($list) = $text =~ /^\s*Device Extensions: count = \d+\n(?:-+\n)?((?:\s+VK_\w+\s*: extension revision.*\n)+)/m;
    $points{"extension $_"} = 'pass' for ($list // '') =~ /(VK_\w+)/g;
    return \%points;
}

# A scene that does not run has a line without a rate.
sub vkmark {
    my ($text) = @_;
    my %points;
    while ($text =~ /^\[(\w+)\] (.*?): (.*)$/mg) {
        my ($scene, $options, $said) = ($1, $2, $3);
        $points{"$scene $options"} = $said =~ /FPS: [1-9]/ ? 'pass' : 'fail';
    }
    return \%points;
}

my %says = (OK => 'pass', FAIL => 'fail', 'not supported' => 'skip');

# The sections of the CPU's backend are not the driver's.
sub test_opt {
    my ($text) = @_;
    my (%points, $vulkan);
    for my $line (split /\n/, $text) {
        $vulkan = $1 eq 'Vulkan0' if $line =~ m{^Backend \d+/\d+: (\S+)};
        $points{$1} = $says{$2} if $vulkan && $line =~ /^\s+(test_\w+\(.*\)): (OK|FAIL)/;
    }
    return \%points;
}

# Before the name of a case that fails there is the error, on the same line.
sub backend_ops {
    my ($text) = @_;
    my %points;
    $points{$1} = $says{$2} while $text =~ /(?:^|\s)([A-Z][A-Z0-9_]*\(\S+\)): (OK|FAIL|not supported)/mg;
    return \%points;
}

sub clinfo {
    my ($text) = @_;
    return { 'the GPU is found' => $text =~ /Device Name\s+zink.*Venus/ ? 'pass' : 'fail' };
}

# in-place prints the command before each program's output, and its status after it.
sub piglit {
    my ($text) = @_;
    my (%points, $program);
    for my $line (split /\n/, $text) {
        if ($line =~ /^== status (\d+)/) {
            $points{$program} //= 'fail';
            $points{$program} = 'fail' if $1 > 1;
        } elsif ($line =~ m{^== (?:cl-program-tester \S*/)?(\S+)}) {
            $program = $1;
        } elsif ($line =~ /^PIGLIT: \{"subtest": \{"(.*)" : "(\w+)"\}\}/) {
            $points{"$program: $1"} = $2 eq 'warn' ? 'pass' : $2;
        } elsif ($line =~ /^PIGLIT: \{"result": "(\w+)"/) {
            $points{$program} = $1 eq 'warn' ? 'pass' : $1;
        }
    }
    return \%points;
}

sub clpeak {
    my ($text) = @_;
    return { 'kernel launch latency' => $text =~ /Kernel launch latency : [\d.]+/ ? 'pass' : 'fail' };
}

1;
