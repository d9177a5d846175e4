# SPDX-License-Identifier: MIT
# kill -9 in the middle: an operation runs in L1, and when the driver shows that it has reached a certain
# point, the victims die, all by one kill.
package VGPU::Kill;

use strict;
use warnings;

use VGPU::Lab;

# The processes of a victim, in L1's shell. The render server is the engine's child, and the workers, one
# for each context of the guest, are the server's.
my %pids = (
    engine => '$(systemctl show -P MainPID $unit)',
    worker => '$(pgrep -P "$(pgrep -P "$(systemctl show -P MainPID $unit)" virgl_render)")',
    qemu => '$(cat /run/libvirt/qemu/$vm.pid)',
    libvirtd => '$(systemctl show -P MainPID libvirtd.service)',
);

# In L1: begins $begin, waits until the vGPU's state matches $moment (a shell pattern), or for $moment
# seconds, and kills the victims. Returns what $begin printed and how it ended.
sub in_the_middle {
    my ($vgpu, $vm, $begin, $moment, @victims) = @_;
    my $wait = "sleep $moment";
    $wait = "until read -r now <\$state && [[ \$now == $moment ]]; do"
        . ' (( SECONDS < 60 )) || { echo "the vGPU stays $now"; exit 9; }; done'
        if $moment =~ /=/;
    my $pids = join ' ', map { $pids{$_} // die "no victim is called $_\n" } @victims;
    return VGPU::Lab::host(<<"SH", timeout => 200);
unit=$vgpu->{unit}
vm=$vm
state=/sys/bus/mdev/devices/$vgpu->{uuid}/vgpu/state
victims="$pids"
( $begin ) 2>&1 & begun=\$!
$wait
kill -KILL \$victims || exit 1
wait \$begun
echo "it ended with status \$?"
SH
}

1;
