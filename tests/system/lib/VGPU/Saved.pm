# SPDX-License-Identifier: MIT
# A tenant's VM that can be saved and migrated: its vGPU, which has a display, is in it from power-on, and QEMU is told to.
package VGPU::Saved;

use strict;
use warnings;

use Time::HiRes qw(sleep);
use VGPU::Compute;
use VGPU::Lab;
use VGPU::Picture;

sub host { return VGPU::Lab::host(@_) }

sub new { my ($class, $tenant) = @_; return bless { tenant => $tenant, name => $tenant->{name}, uuid => $tenant->{vgpu}{uuid} }, $class }

sub display { my ($self, $on) = @_; host("echo $on >/sys/bus/mdev/devices/$self->{uuid}/vgpu/display"); return }

# $migration: QEMU's property of each VFIO device.
sub define {
    my ($self, $migration) = @_;
    my $xml = host("cat /run/$self->{name}.xml");
    $xml =~ s{<video>}{<graphics type='vnc' port='5921'/>
    <hostdev mode='subsystem' type='mdev' managed='no' model='vfio-pci' display='on' ramfb='on'>
      <source><address uuid='$self->{uuid}'/></source>
    </hostdev>
    <video>} or die $xml;
    $xml =~ s{<domain type='kvm'>}{<domain type='kvm' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>} or die $xml;
    $xml =~ s{</domain>}{<qemu:commandline>
  <qemu:arg value='-global'/>
  <qemu:arg value='vfio-pci.enable-migration=$migration'/>
</qemu:commandline>
</domain>} or die $xml;
    host('cat >/run/save.xml && virsh -q define /run/save.xml', stdin => $xml);
    return;
}

sub start {
    my ($self) = @_;
    my $tenant = $self->{tenant};
    $tenant->destroy;
    $self->define('on');
    host("virsh -q start $self->{name}", timeout => 240);
    $tenant->wait_up;
    VGPU::Compute::install($tenant);
    $self->be_patient;
    return $tenant->find_gpu($tenant->{vgpu});
}

# An emulated machine writes some MiB a second, and a frame buffer counts as written all the time.
sub be_patient {
    my ($self) = @_;
    host("virsh qemu-monitor-command $self->{name} --hmp 'migrate_set_parameter downtime-limit 5000'");
    return;
}

sub boot { my ($self) = @_; return $self->{tenant}->run('cat /proc/sys/kernel/random/boot_id', timeout => 120) }

# Dies if it is not the same boot of the guest as before.
sub must_be_back {
    my ($self, $boot) = @_;
    VGPU::Lab::hang_up($self->{name});
    die "it has booted\n" if $self->boot ne $boot;
    $self->be_patient;
    return 'up for ' . $self->{tenant}->run('cut -d. -f1 /proc/uptime') =~ s/\s+\z/ s/r;
}

# Something to see that stays.
sub write_on_screen {
    my ($self, $words) = @_;
    $self->{tenant}->run("timeout 60 sh -c 'until [ -e /sys/class/graphics/fb0 ]; do sleep 0.3; done'; "
        . qq{printf '\\033c\\033[?25l$words' >/dev/tty1; sleep 1}, timeout => 80);
    return VGPU::Picture->take($self->{tenant}, 'save-' . ($words =~ tr/ /-/r));
}

sub is_same { my ($one, $other) = @_; return $one->size eq $other->size && "@{ $one->{rows} }" eq "@{ $other->{rows} }" }

sub must_show {
    my ($self, $picture, $name) = @_;
    my $seen;
    for (1 .. 40) {
        $seen = VGPU::Picture->take($self->{tenant}, "save-$name");
        return $seen->size if is_same($seen, $picture);
        sleep 0.5;
    }
    die 'it shows ' . $seen->size . ', ' . keys(%{ $seen->colours }) . " colours: build/system/artefacts/save-$name.png\n";
}

# A program that computes in the guest, whoever is connected to it; and how it has ended.
sub start_program {
    my ($self) = @_;
    my $tenant = $self->{tenant};
    my $gpu = $tenant->gpu_of($tenant->{vgpu});
    $tenant->run("setsid nohup sh -c 'on-gpu $gpu vk-compute --device-name Venus --forever; echo status \$?' </dev/null >/run/job 2>&1 &");
    $tenant->run('timeout 100 sh -c "until grep -q OK.round.2 /run/job; do sleep 0.5; done"', timeout => 120);
    return;
}

sub program_has_failed {
    my ($self) = @_;
    my $end = $self->{tenant}->run('timeout 100 sh -c "until grep -q ^status /run/job; do sleep 0.5; done"; tail -n 3 /run/job', timeout => 120);
    die $end if $end !~ /^status (?:1|134)$/m;
    return $end;
}

1;
