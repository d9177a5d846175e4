#!/usr/bin/env perl
# SPDX-License-Identifier: MIT
#
# The content of the packages that `make deb` has built: nothing in a wrong place, a man page for each program, the
# programs that units name, hardening, and no complaint of lintian. Runs in the rig's tree: make check-deb.
use strict;
use warnings;
use Test::More;

my @debs = glob 'build/deb/*.deb build/deb/fleet/*.deb build/deb/guest/*.deb';
BAIL_OUT('no packages in build/deb: make deb') if !@debs;

# Where our files may be; all else is a mistake in an install rule.
my $places = qr{^(?:
    etc/vgpu/types\.d |
    etc/libvirt/hooks/qemu\.d/50-vgpu |
    usr/s?bin/vgpu[a-z-]* |
    usr/lib/mdevctl/scripts\.d/callouts/mdev-vgpu |
    usr/lib/(?:mdev-vgpu|vgpu/types\.d|modules-load\.d|systemd/system|udev/rules\.d)/[^/]+ |
    usr/lib/[a-z0-9_]+-linux-gnu/mdev-vgpu/(?:libvgpu_governor\.so|libvgpu_guarded\.so|libvgpu-member\.so\.1) |
    usr/lib/mdev-vgpu/slurm/[^/]+ |
    usr/lib/mdev-vgpu/cuda/lib(?:cuda|nvidia-ml)\.so(?:\.1)? |
    usr/lib/mdev-vgpu/guest/lib(?:cuda|nvidia-ml)\.so(?:\.1)? |
    usr/lib/mdev-vgpu/guest-cuda/(?:libcuda\.so\.1|libnvidia-ml\.so\.1|vgpu-container-hook|vgpu-guest-cdi) |
    usr/lib/[a-z0-9_]+-linux-gnu/lib(?:cuda|nvidia-ml)\.so\.1 |
    usr/share/(?:man/man[1-8]|doc|dbus-1|polkit-1/actions|vulkan/implicit_layer\.d|bash-completion/completions|zsh/vendor-completions|fish/vendor_completions\.d)/.+ |
    usr/share/selinux/packages/vgpu\.cil |
    usr/share/cockpit/mdev-vgpu/[^/]+ |
    usr/share/metainfo/org\.mdev_vgpu\.cockpit\.metainfo\.xml |
    usr/src/mdev-vgpu-[0-9.]+/.+
)$}x;

my (%files, %package_of);
for my $deb (@debs) {
    my ($package) = $deb =~ m{([^/_]+)_[^/]+$};
    my @list = map { s{^\./}{}r } split /\n/, `dpkg-deb --fsys-tarfile '$deb' | tar -t`;
    # A directory counts if it is the only content: types.d.
    $files{$package} = [grep { !m{/$} || m{types\.d/$} } @list];
    $package_of{$_} = $package for @{ $files{$package} };
}

# make-deb leaves the page out where npm's packages cannot be had.
my @page = -e 'cockpit/node_modules/.package-lock.json' ? 'cockpit-mdev-vgpu' : ();
diag('there is no npm here: cockpit-mdev-vgpu was not built, and is not checked') if !@page;
is_deeply([sort keys %files], [@page, qw(mdev-vgpu mdev-vgpu-dkms mdev-vgpu-doc vgpu-card vgpu-engine vgpu-governor vgpu-guest-cuda vgpu-host-agent vgpu-kubelet vgpu-libvirt vgpu-mdevctl
    vgpu-registrar vgpu-slurm vgpu-slurm-ctld)],
    'these are the packages');

my @astray = grep { !m{$places} } map { s{/$}{}r } grep { $_ ne 'usr/lib/vgpu/types.d/' } sort keys %package_of;
is("@astray", '', 'no file outside the expected directories');

# Programs and their manual; the same package has both.
for my $program (grep { m{^usr/s?bin/} } sort keys %package_of) {
    my ($name) = $program =~ m{([^/]+)$};
    my ($page) = grep { m{^usr/share/man/man[18]/\Q$name\E\.[18]\.gz$} } sort keys %package_of;
    is($page && $package_of{$page}, $package_of{$program}, "$name has a man page in its package");
}

system('rm -rf build/deb/unpacked') == 0 or BAIL_OUT('rm');
for my $deb (@debs) {
    system('dpkg-deb', '-x', $deb, 'build/deb/unpacked') == 0 or BAIL_OUT("dpkg-deb -x $deb");
}

sub slurp {
    my ($path) = @_;
    local $/ = undef;
    open my $in, '<', "build/deb/unpacked/$path" or BAIL_OUT("$path: $!");
    return <$in>;
}

for my $unit (grep { m{\.service$} && m{systemd/system/} } sort keys %package_of) {
    my $text = slurp($unit);
    my ($page, $section) = $text =~ /^Documentation=man:([\w.-]+)\((\d)\)/m;
    ok($page && $package_of{"usr/share/man/man$section/$page.$section.gz"}, "$unit: its manual is in the packages");
    my @programs = $text =~ m{^Exec\w+=/(\S+)}mg;
    my @missing = grep { !$package_of{$_} || $package_of{$_} ne $package_of{$unit} } @programs;
    is("@missing", '', "$unit: its programs are in its package");
}

for my $rules (grep { m{^usr/lib/udev/} } sort keys %package_of) {
    my @missing = grep { m{/mdev-vgpu/} && !$package_of{$_} } slurp($rules) =~ m{"/(usr/\S+?)[" ]}g;
    is("@missing", '', "$rules: its programs are in the packages");
}

my ($layer) = grep { /libvgpu_governor\.so$/ } keys %package_of;
my ($library) = slurp('usr/share/vulkan/implicit_layer.d/VkLayer_vgpu_governor.json') =~ /"library_path": "\/([^"]+)"/;
is($library, $layer, 'the Vulkan layer names the library where it is');

my ($guarded) = grep { /libvgpu_guarded\.so$/ } keys %package_of;
($library) = slurp('usr/lib/mdev-vgpu/VkLayer_vgpu_guarded.json') =~ /"library_path": "\/([^"]+)"/;
is($library, $guarded, 'and so does that of guarded slices');

for my $elf ($layer, $guarded, grep { m{^usr/s?bin/|/callouts/|/slurm/\w+\.so$|/lib(?:vgpu-member|cuda|nvidia-ml)\.so\.1$|/vgpu-cuda-worker$} } sort keys %package_of) {
    my $seen = `readelf -W -hld build/deb/unpacked/$elf`;
    ok($seen =~ /Type:\s+DYN/ && $seen =~ /GNU_RELRO/ && $seen =~ /BIND_NOW|Flags: NOW/, "$elf: position independent, relro, bind now");
    unlike($seen, qr/RPATH|RUNPATH(?!\).*\[(?:\$ORIGIN|\/usr\/lib\/[a-z0-9_]+-linux-gnu\/mdev-vgpu)\])/, "$elf: no path of the build in it");
}

# The door's way to the driver, which no package has.
my ($real) = map { `dpkg-deb -c '$_'` =~ m{ \./usr/lib/mdev-vgpu/real -> (\S+)$}m } grep { m{/vgpu-governor_} } @debs;
is($real, '/run/vgpu/nvidia', 'the CUDA door finds the driver by links that vgpud makes');

# The driver's package is for Debian 12, too.
my ($dkms) = grep { m{/mdev-vgpu-dkms_} } @debs;
my $depends = `dpkg-deb -f $dkms Depends`;
is($depends, "dkms (>= 3.0.10)\n", "the driver's package asks for nothing that Debian 12 does not have");

# Slurm's plugins: SPANK's of one minor version, job_submit's of exactly one.
my ($slurm) = `dpkg-query -W -f '\${Version}' libslurm-dev` =~ /^([\d.]+)/;
my ($minor) = $slurm =~ /^(\d+\.\d+)/;
my $after = sub { $_[0] =~ s/(\d+)$/$1 + 1/er };
my %of_slurm = map { m{/(vgpu-slurm(?:-ctld)?)_} ? ($1 => scalar `dpkg-deb -f '$_' Depends`) : () } @debs;
like($of_slurm{'vgpu-slurm'}, qr/slurm-client \(>= \Q$minor\E\), slurm-client \(<< \Q@{[ $after->($minor) ]}\E~\)/, "vgpu-slurm is for Slurm $minor");
like($of_slurm{'vgpu-slurm-ctld'}, qr/slurmctld \(>= \Q$slurm\E\), slurmctld \(<< \Q@{[ $after->($slurm) ]}\E~\)/, "vgpu-slurm-ctld is for Slurm $slurm");

# What hosts without VMs install, and all that comes with it, what is only recommended as well.
my %fields = map { my ($package) = m{([^/_]+)_[^/]+$}; $package => scalar `dpkg-deb -f '$_' Depends Pre-Depends Recommends` } @debs;
unlike($fields{'cockpit-mdev-vgpu'}, qr/Recommends:.*\bcockpit\b/, 'all packages at once bring no web server') if @page;
my @wanted = qw(vgpu-host-agent vgpu-governor vgpu-engine);
my %for_containers;
while (my $package = shift @wanted) {
    next if $for_containers{$package}++ || !$fields{$package};
    push @wanted, $fields{$package} =~ /(?:^|[,|:])\s*([a-z0-9][a-z0-9.+-]+)/mg;
}
is(join(' ', sort grep { $fields{$_} } keys %for_containers), 'vgpu-engine vgpu-governor vgpu-host-agent',
    'a host without VMs needs three packages');
my @of_vms = grep { /^(?:dkms|mdevctl|qemu.*|libvirt.*)$/ } sort keys %for_containers;
is("@of_vms", '', 'which ask for nothing of VMs');
my $apt = 'apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces --no-enhances';
my %all = map { $_ => 1 } map { s/^\s+//r } grep { /^\w/ } split /\n/,
    `$apt @{[ grep { !$fields{$_} } keys %for_containers ]} 2>/dev/null`;
cmp_ok(scalar(keys %all), '>', 20, 'apt knows what those need in turn');
is(join(' ', grep { /^(?:dkms|mdevctl|qemu-system.*|libvirt.*)$/ } sort keys %all), '', 'and there is nothing of VMs in that');

my $complaints = `lintian --no-cfg --allow-root --fail-on error,warning @debs 2>&1`;
is($?, 0, 'lintian has neither an error nor a warning') or diag($complaints);
is(scalar(grep { m{lintian/overrides} } keys %package_of), 0, 'nothing is hidden from lintian');

system('rm', '-rf', 'build/deb/unpacked');
done_testing();
