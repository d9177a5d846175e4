#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# vgpud is killed at random moments of random operations, the same ones in each run. Guests compute on, and after each
# restart what is wanted, the ledger, the kernel and mdevctl agree: nothing lost, nothing doubled, and of several that
# are made at once all or none.
#
#   VGPU_SEED     another run than the usual one (95); said at the beginning
#   VGPU_KILLS    how many (20; 200 in `make soak`)
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use JSON::PP;
use VGPU::Host;
use VGPU::Test;

my ($red) = baseline();
my $gpu = VGPU::Lab::gpu();
my ($driver) = $red->{vgpu}{type} =~ /^(.*)-vgpu-half$/;
my $kills = $ENV{VGPU_KILLS} // 20;
my $seed = $ENV{VGPU_SEED} // 95;
my %known;    # UUIDs that an operation may have made
my $serial = 0;

srand $seed;
diag("VGPU_SEED=$seed");

sub host { return VGPU::Lab::host(@_) }
sub fresh { return sprintf 'dead0000-0000-4000-8000-%012d', ++$serial }
sub any { my @all = sort keys %known; return @all ? $all[rand @all] : undef }

# The next operation, as a command line. Names that it leaves open are looked up afterwards.
my @operations = (
    sub { my $id = fresh(); $known{$id} = 1; return "vgpu create sixteenth --uuid $id" },
    sub { my $id = fresh(); $known{$id} = 1; return "vgpu create sixteenth --define --tenant killed --uuid $id" },
    sub { my @id = (fresh(), fresh()); @known{@id} = (1, 1); return "vgpu create sixteenth --autostart --uuid $id[0] --uuid $id[1]" },
    sub { my $id = any() // return; return "vgpu set $id --weight " . (1 + int rand 999) . ' --priority ' . int rand 16 },
    sub { my $id = any() // return; return "vgpu remove $id" },
    sub { return 'tenant set killed --vgpus ' . (5 + int rand 5) },
    sub { return "gpu drain $gpu; vgpuctl gpu resume $gpu" },
);

sub next_operation {
    while (1) {
        my $command = $operations[rand @operations]->();
        return $command if $command;
    }
}

# UUID to each of the three's knowledge of it.
sub as_listed { return map { $_->{Uuid} => $_ } @{ decode_json(host('vgpuctl -o json vgpu list')) } }

sub in_kernel {
    my $text = host(q{cd /sys/bus/mdev/devices && for d in *; do [ -e $d/vgpu/weight ] && }
        . q{echo $d $(cat $d/vgpu/vram_bytes $d/vgpu/weight $d/vgpu/priority); done; true});
    return map { my ($id, @of) = split; ($id => { Vram => $of[0], Weight => $of[1], Priority => $of[2] }) } split /\n/, $text;
}

# A definition may disappear while they are read: recovery is still running.
sub in_mdevctl {
    my $text = host('cd /etc/mdevctl.d && grep -sH "" */* || true');
    my %file;
    $file{$1} .= "$2\n" while $text =~ m{^[^/\n]+/([0-9a-f-]{36}):(.*)$}mg;
    return map { $_ => decode_json($file{$_}) } keys %file;
}

sub attribute_of {
    my ($definition, $name) = @_;
    my ($found) = map { $_->{"vgpu/$name"} // () } @{ $definition->{attrs} // [] };
    return $found;
}

# The disagreements; empty if there are none.
sub disagreement {
    my %list = as_listed();
    my %kernel = in_kernel();
    my %defined = in_mdevctl();
    my @wrong;
    for my $id (sort keys %{ { %list, %kernel, %defined } }) {
        my ($l, $k, $d) = ($list{$id}, $kernel{$id}, $defined{$id});
        push(@wrong, "$id: vgpud does not know it"), next if !$l;
        push @wrong, "$id: vgpud has it, nobody else" if !$k && !$d;
        push @wrong, "$id: defined " . ($d ? 'yes' : 'no') . ', vgpud says otherwise' if !!$d != !!$l->{Defined};
        push @wrong, "$id: autostart" if $d && ($d->{start} eq 'auto') != !!$l->{Autostart};
        for my $key ($k ? qw(Vram Weight Priority) : ()) {
            push @wrong, "$id: $key is $l->{$key}, the kernel has $k->{$key}" if $l->{$key} != $k->{$key};
        }
        my $weight = $d && attribute_of($d, 'weight');
        push @wrong, "$id: weight $l->{Weight}, mdevctl has $weight" if defined $weight && $weight != $l->{Weight};
        push @wrong, "$id: defined and not started" if $d && !$k && $known{$id};
    }
    my $promised = 0;
    $promised += $_->{Vram} for grep { $_->{Device} ne 'stopped' || $_->{Autostart} } values %list;
    my ($seen) = grep { $_->{Address} eq $gpu } @{ decode_json(host('vgpuctl -o json gpu list')) };
    push @wrong, "promised $seen->{PromisedVram}, and the vGPUs are $promised" if $seen->{PromisedVram} != $promised;
    my $open = host('sqlite3 /var/lib/vgpu/state.db "SELECT kind, objects, step FROM operation"');
    push @wrong, "left half done: $open" if $open =~ /\S/;
    return join "\n", @wrong;
}

# Recovery continues after the name is on the bus: waits for it.
sub agrees {
    my $wrong;
    for (1 .. 40) {
        $wrong = disagreement();
        return 1 if !$wrong;
        sleep 0.5;
    }
    die "$wrong\n";
}

# systemd's own limit is five starts in ten seconds.
point('vgpud that dies again and again is started again, and doctor says that it dies', sub {
    my $deaths = 7;
    host('systemctl start vgpud; systemctl reset-failed vgpud');
    my $begin = time;
    for (1 .. $deaths) {
        host('systemctl kill -s KILL vgpud');
        host('vgpuctl gpu list', timeout => 60);
    }
    my $took = time - $begin;
    my $said = host('vgpuctl doctor', fail => 1, timeout => 120);
    die $said if $said !~ /vgpud has died $deaths times/;
    host('systemctl restart vgpud');
    my $well = host('vgpuctl doctor', fail => 1, timeout => 120);
    die $well if $well =~ /vgpud has died/;
    return sprintf '%d deaths in %.0f s', $deaths, $took;
});

host('vgpuctl tenant set killed --vgpus 9');
my $job = VGPU::Compute::vulkan($red, $red->gpu_of($red->{vgpu}), '--forever --pause 300');
$job->expect(qr/^OK round 1:/m, 120);

my $failed = 0;
for my $number (1 .. $kills) {
    my $command = next_operation();
    my $delay = rand 1.5;
    $failed++ if !point(sprintf('kill %d, %.2f s into "%s"', $number, $delay, $command), sub {
        my $running = VGPU::Lab::host_job("vgpuctl $command");
        sleep $delay;
        VGPU::Host::kill_vgpud();
        $running->wait(90, fail => 1);
        agrees();
        host("vgpuctl gpu resume $gpu", fail => 1);
        my %list = as_listed();
        my @together = $command =~ /create/ ? $command =~ /--uuid (\S+)/g : ();
        my $made = grep { $list{$_} } @together;
        die "$made of those that were to be made together: @together\n" if $made && $made != @together;
        delete $known{$_} for grep { !$list{$_} } keys %known;
        # The GPU is small: vGPUs are removed when it is full.
        if (keys %known > 2) { host("vgpuctl slice remove $_") for keys %known; %known = () }
        return scalar(keys %list) . ' vGPUs';
    });
    last if $failed > 3;
}

point('the guest has computed all the time', sub {
    my $seen = keeps_computing($job, 2);
    return $seen . '; ' . VGPU::Compute::stop_right($red, $job);
});

point('nothing is left of it', sub {
    my %list = as_listed();
    for my $id (grep { $list{$_} } keys %known) { host("vgpuctl slice remove $id") }
    host('vgpuctl tenant remove killed');
    my $left = host('mdevctl list --defined; mdevctl list');
    die $left if $left =~ /dead0000/;
    agrees();
});

done_testing();
