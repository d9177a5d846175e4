#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# Files of a folder that call each other in a circle can be read and tested only together. These folders have none.
# layers.t looks at what they include.
use strict;
use warnings;

use FindBin;
use Test::More;

chdir "$FindBin::Bin/../.." or BAIL_OUT("chdir: $!");
my @folders = qw(governor/core governor/arbiter governor/member governor/lane governor/cuda governor/cuda/memory governor/cuda/time
    governor/vulkan lib mdev-driver/model cuda-remote/wire host-agent/store container-hooks
    mdevctl-plugins qemu-hooks fleet/request fleet/kubernetes/dra fleet/kubernetes/grpc fleet/kubernetes/plugin card);

sub slurp { my ($file) = @_; local $/ = undef; open my $in, '<', $file or BAIL_OUT("$file: $!"); return <$in> }

# The functions that a file defines: name => whether it is static.
sub functions_of {
    my ($text) = @_;
    my %is_static;
    while ($text =~ /^((?:[A-Za-z_][^\n;{}]*\n)(?:[ ][^\n;{}]*\n)*)\{\n/mg) {
        my $head = $1;
        my ($name) = $head =~ /(\w+)\(/ or next;
        $is_static{$name} = $head =~ /^static/ ? 1 : 0;
    }
    return \%is_static;
}

# Texts by file => for each file, those whose functions it names.
sub uses_of {
    my ($texts) = @_;
    my (%own, %owner, %uses);
    for my $file (keys %$texts) {
        $texts->{$file} =~ s{/\*.*?\*/}{}gs;
        $own{$file} = functions_of($texts->{$file});
        $owner{$_} = $file for grep { !$own{$file}{$_} } keys %{ $own{$file} };
    }
    for my $file (keys %$texts) {
        # The driver's function of the name.
        $texts->{$file} =~ s/\b(?:DRIVER|REAL|CARD)\(\w+//g;
        my %words = map { $_ => 1 } $texts->{$file} =~ /\b([a-z_]\w*)\b/g;
        $uses{$file}{ $owner{$_} } = 1 for grep { $owner{$_} && $owner{$_} ne $file && !exists $own{$file}{$_} } keys %words;
    }
    return \%uses;
}

# What is left when those that use no other are taken away, again and again: circles, and who uses them.
sub circles_of {
    my ($uses) = @_;
    my %left = map { $_ => { %{ $uses->{$_} } } } keys %$uses;
    while (my @free = grep { my $file = $_; !grep { $left{$_} } keys %{ $left{$file} } } keys %left) {
        delete @left{@free};
    }
    return [sort keys %left];
}

my $planted = { 'a.c' => "int a(void)\n{\n    return b();\n}\n", 'b.c' => "int b(void)\n{\n    return c();\n}\n",
    'c.c' => "int c(void)\n{\n    return a() + d();\n}\n", 'd.c' => "static int a(void)\n{\n}\n\nint d(int x,\n      int y)\n{\n    return a();\n}\n" };
is_deeply(circles_of(uses_of($planted)), [qw(a.c b.c c.c)], 'a circle of three files is seen');
for my $folder (@folders) {
    my %texts = map { m{([^/]+)$} ? ($1 => slurp($_)) : () } glob "$folder/*.c";
    cmp_ok(scalar keys %texts, '>', 1, "$folder has files");
    is_deeply(circles_of(uses_of(\%texts)), [], "$folder: no files call each other in a circle");
}
done_testing();
