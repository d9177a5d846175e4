# SPDX-License-Identifier: MIT
# What the threads of a VM and its engine do in L1 while a program runs in the guest, by the kernel's trace: system calls,
# sleeps, who wakes whom, and VM exits by reason. Tracing costs time on emulated processors, so these are counts only.
#
#   my $counts = Bench::Trace::during($place, sub { $place->run('vk-bench … tiny', 90) });
package Bench::Trace;

use strict;
use warnings;

use File::Temp;
use VGPU::Command;
use VGPU::Lab;

my @events = qw(raw_syscalls/sys_enter sched/sched_switch sched/sched_waking kvm/kvm_exit);

# The VMM with all that it has started, and the engine with its workers.
sub processes {
    my ($place) = @_;
    my $engine = $place->{uuid} ? "cat /sys/fs/cgroup\$(systemctl show -P ControlGroup vgpu-engine\@$place->{uuid})/cgroup.procs" : 'true';
    return VGPU::Lab::host(<<"SH");
family() { echo \$1; for child in \$(pgrep -P \$1); do family \$child; done; }
family \$(cat /run/rig/guests/$place->{guest}/pid)
$engine
SH
}

sub begin {
    my ($place) = @_;
    my @processes = split ' ', processes($place);
    VGPU::Lab::host(<<"SH");
set -e
cd /sys/kernel/tracing
echo 0 >tracing_on
echo 200000 >buffer_size_kb
echo 1 >options/event-fork
for pid in @processes; do ls /proc/\$pid/task; done >set_event_pid
for event in @events; do echo 1 >events/\$event/enable; done
echo >trace
echo 1 >tracing_on
SH
    return;
}

# The trace's lines, in a file.
sub end {
    my $file = File::Temp->new;
    VGPU::Lab::host("cd /sys/kernel/tracing; echo 0 >tracing_on; echo 0 >events/enable; echo >set_event_pid; cat trace >/tmp/trace; echo >trace",
        timeout => 120);
    VGPU::Command::run([VGPU::Lab::rig('get', '/tmp/trace', $file->filename)], timeout => 120);
    return $file;
}

# A thread's name without what differs between two of its kind.
sub kind { my ($name) = @_; return $name =~ s/[-:\/]?\d+$//r }

sub count {
    my ($file) = @_;
    my %is;
    open my $in, '<', $file->filename or die "trace: $!\n";
    while (my $line = <$in>) {
        my ($who, $event, $rest) = $line =~ /^\s*(.+)-\d+\s+\[\d+\]\s+\S+\s+[\d.]+: (\w+): (.*)$/ or next;
        if ($event eq 'sys_enter') { $is{calls}{ kind($who) }++ }
        elsif ($event eq 'kvm_exit' && $rest =~ /reason (\S+)/) { $is{exits}{$1}++ }
        elsif ($event eq 'sched_waking' && $rest =~ /^comm=(.+) pid=/) { $is{wakes}{ kind($who) . ' > ' . kind($1) }++ }
        elsif ($event eq 'sched_switch' && $rest =~ /^prev_comm=(.+) prev_pid=\d+ prev_prio=\d+ prev_state=[SDI]/) { $is{sleeps}{ kind($1) }++ }
    }
    close $in;
    return \%is;
}

sub during {
    my ($place, $code) = @_;
    begin($place);
    $code->();
    return count(end());
}

1;
