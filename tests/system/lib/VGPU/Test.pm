# SPDX-License-Identifier: MIT
# What the *.t files share: a lab that `check` has started (or any rig that is up with KEEP=1), two
# VMs with a vGPU each, and test points that log.
#
#   use VGPU::Test;
#   my ($red, $blue) = baseline();
#   point('what must be so', sub { ...; die "why not\n" if ...; return 'what was seen' });
#   done_testing();
package VGPU::Test;

use strict;
use warnings;

use Exporter qw(import);
use File::Basename qw(basename);
use File::Path qw(make_path);
use Test::More ();
use Test::More import => [qw(ok diag note)];
use Time::HiRes qw(sleep time);
use VGPU::Command;
use VGPU::Compute;
use VGPU::KernelLog;
use VGPU::Lab;
use VGPU::Tenant;
use VGPU::Vgpu;

our @EXPORT = qw(baseline point computes keeps_computing done_testing diag sleep time);

my $name = basename($0, '.t');
my @tenants;

BEGIN {
    $| = 1;
    chdir VGPU::Lab::top() or die "chdir: $!\n";
    make_path($VGPU::Lab::logs);
    my $file = "$VGPU::Lab::logs/" . basename($0, '.t') . '.log';
    unlink $file;
    VGPU::Command::log_to($file);
}

# One test point. $code dies if it fails; its result is shown beside. The file ends with it if L1 does not answer any more:
# each of the others would wait for its limit.
sub point {
    my ($what, $code) = @_;
    VGPU::Command::note("== $what");
    my $begin = time;
    my $seen = eval { $code->() // '' };
    my $error = $@;
    my $passed = ok(!$error, sprintf '%s (%.0f s)', $what, time - $begin);
    if ($error) {
        VGPU::Command::note("FAILED: $error");
        my $answers = VGPU::Lab::is_up();
        diag($error, "log: $VGPU::Lab::logs/$name.log\n", $answers ? (journal(time - $begin), suspects()) : ());
        die "L1 does not answer: no further point is run\n" if !$answers;
    } else {
        note($seen) if $seen =~ /\S/;
    }
    return $passed;
}

# Messages of L1's units and its kernel in the last seconds, for a failure that does not repeat.
sub journal {
    my ($seconds) = @_;
    my $since = sprintf '-%ds', $seconds + 2;
    my $text = eval {
        VGPU::Lab::host("journalctl -q --no-pager -o short-precise --since $since"
                . q{ | grep -E 'vgpu|virgl|kernel:|libvirtd|qemu' | tail -n 30}, fail => 1, timeout => 30);
    };
    return defined $text ? "L1's journal since then:\n$text" : "L1's journal can't be read: $@";
}

# For timeouts: what each of our threads, and of programs in the guests, sleeps in, and any that waits for a disk; and what
# has begun in the last minutes, a command that hangs among it.
my $threads = q{ps -eLo stat,wchan:30,comm | grep -E '^D|vgpu|virgl|-compute' | sort | uniq -c};
my $young = q{ps -eo pid,ppid,stat,etimes,wchan:24,args --sort=etimes | awk '$4 < 150 && !/\[/' | head -n 25 | cut -c-160};

sub suspects {
    my @places = ([L1 => sub { VGPU::Lab::host(@_) }]);
    for my $tenant (@tenants) {
        push @places, [$tenant->{name} => sub { $tenant->run(@_) }];
    }
    my $text = '';
    for my $place (@places) {
        my ($where, $run) = @$place;
        $text .= "threads in $where:\n" . (eval { $run->("$threads; $young", timeout => 30, fail => 1) } // $@);
    }
    my $arbiters = q{for socket in /run/vgpu/governor/*/status.sock; do
        [ -S "$socket" ] && socat -T2 - "UNIX-CONNECT:$(echo "$socket" | sed 's/:/\\\\:/g')" </dev/null; done};
    return $text . "arbiters:\n" . (eval { VGPU::Lab::host($arbiters, fail => 1, timeout => 20) } // $@);
}

my %vgpus = (red => [1, 'half'], blue => [2, 'quarter']);

# The tenant's vGPU, which exists then, with an engine that is ready.
sub vgpu_of {
    my ($who) = @_;
    my ($number, $size) = @{ $vgpus{$who} };
    my $gpu = VGPU::Lab::gpu();
    my ($driver) = VGPU::Lab::host("ls /sys/bus/pci/devices/$gpu/mdev_supported_types") =~ /^(.*)-vgpu-half$/m;
    my $vgpu = VGPU::Vgpu->new($number, "$driver-vgpu-$size");
    $vgpu->start($gpu) if !$vgpu->exists;
    $vgpu->wait_engine;
    return $vgpu;
}

# The state that every test begins with, restored if another test has changed it: both VMs up, both vGPUs there with
# their engines, red with the first, blue with the second. %images: other guest images than Debian 13's, such as red =>
# 'sid', for VMs that are not up.
sub baseline {
    my (%images) = @_;
    my $gpu = VGPU::Lab::gpu();
    # A file that kills engines leaves an unhealthy GPU behind, as it should.
    VGPU::Lab::host("systemctl -q is-active vgpud && vgpuctl gpu clear $gpu", fail => 1, timeout => 60);
    @tenants = ();
    for my $who (qw(red blue)) {
        my $tenant = VGPU::Tenant->new($who, $images{$who});
        $tenant->{vgpu} = vgpu_of($who);
        push @tenants, $tenant;
    }
    my @down = grep { $_->state ne 'running' } @tenants;
    VGPU::Tenant::start(@down) if @down;
    for my $tenant (@tenants) {
        my $up = $tenant->wait_up;
        VGPU::Compute::install($tenant);
        $tenant->find_gpu($tenant->{vgpu}) or $tenant->attach($tenant->{vgpu});
    }
    return @tenants;
}

# Dies if a kernel log or a guest's console has a complaint since the previous test file; marks the logs as read.
sub kernels_are_well {
    my $log = VGPU::Lab::host(VGPU::KernelLog::unread(), timeout => 300);
    VGPU::Lab::host(VGPU::KernelLog::mark_read($log));
    my @bad = map { "L1: $_" } VGPU::KernelLog::complaints('L1', $log);
    push @bad, map { "a guest's console: $_" }
        VGPU::KernelLog::complaints('guest', VGPU::Lab::host(VGPU::KernelLog::unread_consoles()));
    my @asked = 'L1';
    for my $tenant (grep { $_->state eq 'running' } @tenants) {
        $log = $tenant->run(VGPU::KernelLog::unread(), timeout => 300);
        $tenant->run(VGPU::KernelLog::mark_read($log));
        push @bad, map { "$tenant->{name}: $_" } VGPU::KernelLog::complaints('guest', $log);
        push @asked, $tenant->{name};
    }
    die "these are not in tests/system/kernel-log.allow:\n", map { "$_\n" } @bad if @bad;
    return "@asked";
}

# Adds a last point to every test file.
sub done_testing {
    point('no kernel has complained', \&kernels_are_well);
    return Test::More::done_testing();
}

# Vulkan in a tenant on its own vGPU: the verdict line, or death.
sub computes {
    my ($tenant, $options, $timeout) = @_;
    my $job = VGPU::Compute::vulkan($tenant, $tenant->gpu_of($tenant->{vgpu}), $options);
    return VGPU::Compute::verdict($job->wait($timeout // 120));
}

# A job that computes forever has verified $more rounds more within the limit.
sub keeps_computing {
    my ($job, $more, $limit) = @_;
    my $goal = VGPU::Compute::rounds($job) + ($more // 2);
    $job->expect(qr/^OK round $goal: (.*)/m, $limit // 120);
    return "round $goal";
}

1;
