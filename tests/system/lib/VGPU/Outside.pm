# SPDX-License-Identifier: MIT
# What is in use, from independent sources: /proc shows which process has a node, a VFIO group or a dma-buf open;
# debugfs lists the dma-bufs of L1's kernel; the outer machine's render server shows the memory behind L1's GPU.
package VGPU::Outside;

use strict;
use warnings;

use JSON::PP;
use Time::HiRes qw(sleep time);
use VGPU::Lab;

# Runs in L1. Prints "fd UNIT COMMAND WHAT" for each relevant open file and "buf INODE BYTES EXPORTER" for each dma-buf.
# A mapping keeps a dma-buf alive just as a descriptor does.
my $look = <<'PERL';
for my $dir (glob '/proc/[0-9]*') {
    my (%seen, $unit, $comm);
    for my $fd (glob "$dir/fd/*") {
        my $what = readlink($fd) // next;
        $seen{$what}++ if $what =~ m{^/dev/(?:vgpu|vfio)/.};
        $seen{'dmabuf:' . (stat $fd)[1]}++ if $what =~ m{^/dmabuf:};
    }
    if (open my $maps, '<', "$dir/maps") {
        while (<$maps>) { $seen{"dmabuf:$1"}++ if m{ (\d+) +/dmabuf:} }
    }
    next if !%seen;
    for (['comm', \$comm], ['cgroup', \$unit]) {
        open my $in, '<', "$dir/$_->[0]" or next;
        ${ $_->[1] } = <$in> // '';
        chomp ${ $_->[1] };
    }
    $unit = $unit =~ m{.*/([^/]+\.(?:service|scope|slice))} ? $1 : '-';
    print "fd $unit $comm $_\n" for sort keys %seen;
}
open my $in, '<', '/sys/kernel/debug/dma_buf/bufinfo' or die "bufinfo: $!\n";
while (<$in>) { print "buf ", $6 + 0, " ", $1 + 0, " $5\n" if /^(\d+)\t(\S+)\t(\S+)\t(\d+)\t(\S+)\t(\d+)/ }
PERL

# Returns { open => [{ unit, command, what }], buffers => { inode => { bytes, exporter } } }.
sub look {
    my $said = VGPU::Lab::host('perl -', stdin => $look, timeout => 120);
    my %seen = (open => [], buffers => {});
    for my $line (split /\n/, $said) {
        if ($line =~ /^fd (\S+) (.*) (\S+)$/) {
            push @{ $seen{open} }, { unit => $1, command => $2, what => $3 };
        } elsif ($line =~ /^buf (\d+) (\d+) (\S+)$/) {
            $seen{buffers}{$1} = { bytes => $2, exporter => $3 };
        } else {
            die "not understood: $line\n";
        }
    }
    return \%seen;
}

# dma-bufs that no process has open or mapped: only the kernel keeps them.
sub kept_by_the_kernel {
    my ($seen) = @_;
    my %had = map { $_->{what} =~ /^dmabuf:(\d+)/ ? ($1 => 1) : () } @{ $seen->{open} };
    return grep { !$had{$_} } sort keys %{ $seen->{buffers} };
}

# Open files with the wrong owner. Only its engine may have a vGPU's node open, only QEMU a VFIO group (and vgpud, for a
# moment), only engines and guards dma-bufs.
sub strangers {
    my ($seen, @vgpus) = @_;
    my %unit = map { ("vgpu-engine\@$_->{uuid}.service" => $_) } @vgpus;
    my @wrong;
    for my $open (@{ $seen->{open} }) {
        my ($unit, $command, $what) = @{$open}{qw(unit command what)};
        my $ours = $unit{$unit} || $unit =~ /^vgpu-guard/;
        next if $what eq '/dev/vfio/vfio' || $what =~ m{^/dev/vfio/} && $command =~ /^qemu-system|^vgpud/;
        next if $what =~ /^dmabuf:/ && $ours;
        next if $unit{$unit} && $what eq "/dev/vgpu/$unit{$unit}{uuid}";
        push @wrong, "$command ($unit) has $what";
    }
    return @wrong;
}

# Dies if a stranger has something open, or if the kernel keeps more than $kept dma-bufs on its own. Waits up to 20 s,
# because processes take time to end.
sub must_be_clean {
    my ($kept, @vgpus) = @_;
    my $end = time + 20;
    while (1) {
        my $seen = look();
        my @wrong = strangers($seen, @vgpus);
        my @left = kept_by_the_kernel($seen);
        push @wrong, map { "nobody has dma-buf $_, $seen->{buffers}{$_}{bytes} bytes of $seen->{buffers}{$_}{exporter}" } @left
            if @left > $kept;
        return if !@wrong;
        die join("\n", 'left behind:', @wrong, '') if time > $end;
        sleep 1;
    }
}

sub children {
    my ($pid) = @_;
    my %parent;
    for my $stat (glob '/proc/[0-9]*/stat') {
        open my $in, '<', $stat or next;
        my ($child, $of) = (<$in> // '') =~ /^(\d+) \(.*\) \S (\d+)/s or next;
        push @{ $parent{$of} }, $child;
    }
    my @all = @{ $parent{$pid} // [] };
    for (my $i = 0; $i < @all; $i++) { push @all, @{ $parent{ $all[$i] } // [] } }
    return @all;
}

sub word_of {
    my ($file, $pattern) = @_;
    open my $in, '<', $file or return;
    local $/ = undef;
    return (<$in> // '') =~ $pattern ? $1 : undef;
}

# The outer render server, in which L1's software GPU runs: its number of contexts, and their memory in KiB. Each context
# is a worker process of it (virgl-4-gpu_ren) and belongs to a program in L1, such as a render worker of an engine or of a
# guard.
sub renderer {
    my $status = decode_json(VGPU::Command::run([VGPU::Lab::rig('status', '--json')]));
    my $rig = $status->{rigs}{$VGPU::Lab::rig_name};
    my ($servers, $contexts, $kib) = (0, 0, 0);
    for my $pid (children($rig->{pid} // die "the rig says no pid\n")) {
        my $name = word_of("/proc/$pid/comm", qr/^(virgl\S*)/) // next;
        if ($name =~ /^virgl-\d/) { $contexts++ } else { $servers++ }
        $kib += word_of("/proc/$pid/smaps_rollup", qr/^Private_Dirty:\s+(\d+) kB/m) // 0;
        $kib += word_of("/proc/$pid/smaps_rollup", qr/^Shared_Dirty:\s+(\d+) kB/m) // 0;
    }
    die "no render server below process $rig->{pid}\n" if !$servers;
    return { contexts => $contexts, kib => $kib };
}

1;
