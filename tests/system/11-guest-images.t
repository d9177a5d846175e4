#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# Guests that are not Debian 13 as it is: red is Debian sid with its own kernel and Mesa, blue Debian 13 with the kernel of
# its backports.
# Rig: --image sid --image backports
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use VGPU::GuestCuda;
use VGPU::Test;

# Newer Mesa waits for fences of the guest's kernel, which are never signalled once their device is unplugged
# (docs/upstream.md, 10). Mesa 25 looks at memory, and notices.
my %waits_for_kernel = (red => 1);

$_->destroy for map { VGPU::Tenant->new($_) } qw(red blue);
my ($red, $blue) = baseline(red => 'sid', blue => 'backports');

# Kernel and Mesa, as numbers that can be compared.
sub versions {
    my ($tenant) = @_;
    my $said = $tenant->run(q(uname -r; dpkg-query -W -f '${Version}\n' mesa-vulkan-drivers));
    my ($kernel, $mesa) = $said =~ /^(\d+\.\d+)\S*\n(\d+\.\d+)/ or die "not understood: $said";
    return ("v$kernel", "v$mesa", "$tenant->{name}: kernel $kernel, Mesa $mesa");
}

point('their kernels and Mesa are newer than those of Debian 13', sub {
    my ($kernel, $mesa, $said) = versions($red);
    die $said if version->parse($kernel) <= v6.12 || version->parse($mesa) <= v25.0;
    my ($other_kernel, undef, $other_said) = versions($blue);
    die $other_said if version->parse($other_kernel) <= v6.12;
    return "$said; $other_said";
});

point('OpenCL and Vulkan in both at the same time are right', sub {
    my @jobs;
    for my $vm ($red, $blue) {
        my $gpu = $vm->gpu_of($vm->{vgpu});
        push @jobs, VGPU::Compute::opencl($vm, $gpu), VGPU::Compute::vulkan($vm, $gpu);
    }
    return join "\n", map { VGPU::Compute::verdict($_->wait($VGPU::Compute::opencl_limit + 60)) } @jobs;
});

for my $vm ($red, $blue) {
    my $name = $vm->{name};
    point("$name: detached while a program computes, and attached again", sub {
        my $job = VGPU::Compute::vulkan($vm, $vm->gpu_of($vm->{vgpu}), '--forever --timeout 30');
        $job->expect(qr/^OK round 2:/m, 120);
        $vm->detach($vm->{vgpu});
        $job->wait(120, fail => 1);
        my $how = VGPU::Compute::must_have_failed($job, unplugged => 1, hung => $waits_for_kernel{$name});
        $vm->attach($vm->{vgpu});
        return "$how; " . computes($vm);
    });

    point("$name: reset in the middle of its work, it boots with its vGPU and computes", sub {
        my $job = VGPU::Compute::vulkan($vm, $vm->gpu_of($vm->{vgpu}), '--forever');
        $job->expect(qr/^OK round 1:/m, 120);
        $vm->reset;
        $job->stop;
        $vm->wait_up;
        $vm->find_gpu($vm->{vgpu}) or die "no vGPU after the reset\n";
        return computes($vm);
    });

    point("$name: its engine is killed while a program computes: that fails, it is not wrong", sub {
        my $job = VGPU::Compute::vulkan($vm, $vm->gpu_of($vm->{vgpu}), '--forever --timeout 30');
        $job->expect(qr/^OK round 2:/m, 120);
        my $engine = $vm->{vgpu}->engine_pid;
        VGPU::Lab::host("kill -KILL $engine");
        $job->wait(120, fail => 1);
        my $how = VGPU::Compute::must_have_failed($job, blank => 1);
        die "the engine is still $engine\n" if $vm->{vgpu}->wait_engine == $engine;
        $vm->rebind($vm->{vgpu});
        return "$how; " . computes($vm);
    });
}

point('CUDA computes in both, on the fake card', sub {
    VGPU::GuestCuda::install();
    for my $vm ($red, $blue) {
        $vm->detach($vm->{vgpu});
        VGPU::GuestCuda::offer($vm->{vgpu});
        $vm->attach($vm->{vgpu});
        VGPU::GuestCuda::put_programs($vm);
        VGPU::GuestCuda::run($vm, $_) for qw(compute threads callbacks);
    }
    return join '', map { $_->run('uname -r') } $red, $blue;
});

for my $vm ($red, $blue) {
    point("$vm->{name}: detached while a CUDA program computes, which gets error 719 and lives on", sub {
        my $job = VGPU::GuestCuda::start($vm, 'lost-memory');
        $vm->detach($vm->{vgpu});
        $job->wait(120);
        VGPU::GuestCuda::nothing_left($vm->{vgpu});
        VGPU::GuestCuda::withdraw($vm->{vgpu});
        $vm->attach($vm->{vgpu});
        return $job->output . computes($vm);
    });
}

VGPU::GuestCuda::remove();
done_testing();
