#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# What the libraries that are loaded into containers' programs need of the C library, by their symbols. All glibc that a
# container may have, from 2.17 on, has that; and musl has all that those need which work without NVIDIA's driver.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use OldLibc;
use Test::More;

my $oldest = 2.17;
my ($musl) = glob '/lib/ld-musl-*.so.1';
# An image may lack all others: since 2.34 glibc itself needs no libpthread.so.0.
my %by_name = map { $_ => 1 } qw(libc.so.6 libvgpu-member.so.1);

sub lines { my ($command) = @_; return split /\n/, `$command` }

# Undefined ones that must be found: name => version.
sub needed {
    my ($library) = @_;
    my %found;
    for (lines("objdump -T $library")) {
        $found{$3} = $2 if /^\S+ .(.).{5}\s*\*UND\*\s+\S+\s+\(?([\w.]+)\)?\s+(\S+)$/ && $1 ne q(w);
    }
    return \%found;
}

sub version { my ($name) = @_; return $name =~ /^GLIBC_2\.(\d+)/ ? $1 : 0 }

my %musl = map { $_ => 1 } lines("nm -D --defined-only $musl | cut -d' ' -f3");
ok($musl{pthread_create}, 'musl is there');
for my $library ($member, $layer, $guarded, $remote, "$build/cuda-remote/libnvidia-ml.so.1", "$build/governor/cuda/libcuda.so.1", "$build/governor/cuda/libnvidia-ml.so.1") {
    my $name = $library =~ s{^\Q$build\E/}{}r;
    my $needed = needed($library);
    ok($needed->{calloc} || $needed->{malloc} || $needed->{memcpy}, "$name needs something of the C library");
    my @newer = grep { version($needed->{$_} // '') > $oldest =~ s/^2\.//r } sort keys %$needed;
    is("@newer", '', "$name needs nothing that is newer than glibc $oldest");
    # NVIDIA's driver needs glibc, and so does what stands in front of it.
    next if $library =~ m{/governor/cuda/};
    my @missing = grep { !$musl{$_} && !/^governor_/ } sort keys %$needed;
    is("@missing", '', "$name needs nothing that musl lacks");
    my @others = grep { !$by_name{$_} } map { /NEEDED.*\[(.*)\]/ ? $1 : () } lines("readelf -d $library");
    is("@others", '', "$name needs no other library");
    next if $library eq $member;
    unlike(`readelf -d $library`, qr/\(AUXILIARY\)/, "$name names none that may be missing: glibc 2.31 aborts in dlopen()");
}

done_testing();
