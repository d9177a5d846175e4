# SPDX-License-Identifier: MIT
package VGPU::House;
# How the C code is built up: files, functions, and which file includes which.
use strict;
use warnings;
use File::Find;

# The folders of the product, each with those below it.
our @folders = qw(lib governor mdev-driver cuda-remote engine host-agent container-hooks qemu-hooks mdevctl-plugins fleet card);

sub read_text { my ($path) = @_; open my $in, '<', $path or die "$path: $!\n"; local $/; return scalar <$in> }

# The .c and .h files below the folders, sorted.
sub sources {
    my @paths;
    find({ no_chdir => 1, wanted => sub { push @paths, $_ if /\.[ch]$/ && -f } }, @_);
    return sort @paths;
}

# Each function that a file defines: {name, is_static, lines}, the lines of its body. Bodies begin and end in the first
# column, as .clang-format and the kernel's style have it.
sub functions {
    my ($text) = @_;
    my @found;
    my ($head, $begin) = ('', 0);
    my @lines = split /\n/, $text;
    for my $i (0 .. $#lines) {
        if ($lines[$i] eq '{' && $head =~ /\b(\w+)\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)(?:\s+__\w+(?:\(\w*\))?)*\s*\z/) {
            $begin = $i + 1;
            my $name = $1;
            push @found, { name => $name, is_static => $head =~ /^static\b/ ? 1 : 0 };
        } elsif ($begin && $lines[$i] =~ /^\}/) {
            $found[-1]{lines} = $i - $begin;
            $begin = 0;
        } elsif (!$begin) {
            $head = $lines[$i] =~ /^[A-Za-z_]/ && $lines[$i] !~ /^(?:typedef|enum|struct \w+ \{)/ ? $lines[$i]
                : $lines[$i] =~ /^\s+\S/ && $head ? "$head $lines[$i]" : '';
        }
    }
    return grep { defined $_->{lines} } @found;
}

# "a/b/../c" is "a/c".
sub plain_path {
    my ($path) = @_;
    1 while $path =~ s{(?:^|(?<=/))(?!\.\./)[^/]+/\.\./}{};
    return $path;
}

# What a file includes of ours, as paths. A bare name is a file of the same folder, or the only one of that name below the
# same top folder, or the only one of all but for what builds make.
my %is_made = map { $_ => 1 } qw(numbers.h);

sub includes {
    my ($path, $by_name) = @_;
    my ($folder, $top) = $path =~ m{^((\w[\w-]*).*)/};
    my @found;
    for my $name (read_text($path) =~ /^#include "([^"]+)"/mg) {
        my $same = plain_path("$folder/$name");
        my @called = @{ $by_name->{ $name =~ s{.*/}{}r } // [] };
        my @near = grep { m{^\Q$top\E/} } @called;
        my ($found) = -e $name ? $name : -e $same ? $same : @near == 1 ? @near : @called == 1 && !$is_made{$name} ? @called : ();
        push @found, $found if $found;
    }
    return @found;
}

sub by_name {
    my %by_name;
    push @{ $by_name{ s{.*/}{}r } }, $_ for grep { /\.h$/ } @_;
    return \%by_name;
}

# A .c file and its header are one module, named without the end.
sub module_of { my ($path) = @_; return $path =~ s/\.[ch]$//r }

# Which module includes which: {module => {module => 1}}.
sub module_graph {
    my @paths = @_;
    my $by_name = by_name(@paths);
    my %graph;
    for my $path (@paths) {
        my $from = module_of($path);
        $graph{$from} //= {};
        $graph{$from}{$_} = 1 for grep { $_ ne $from } map { module_of($_) } includes($path, $by_name);
    }
    return \%graph;
}

# The modules that are reached from one, without it unless it is in a circle.
sub reached_from {
    my ($graph, $from) = @_;
    my (%seen, @queue);
    @queue = keys %{ $graph->{$from} };
    while (defined(my $module = shift @queue)) {
        push @queue, keys %{ $graph->{$module} // {} } if !$seen{$module}++;
    }
    return \%seen;
}

# Groups of modules each of which reaches all of its group: lists, the modules of each sorted.
sub circles {
    my ($graph) = @_;
    my %reached = map { $_ => reached_from($graph, $_) } keys %$graph;
    my (%done, @circles);
    for my $module (sort keys %$graph) {
        next if $done{$module} || !$reached{$module}{$module};
        my @group = grep { $reached{$module}{$_} && $reached{$_}{$module} } sort keys %$graph;
        @done{@group} = (1) x @group;
        push @circles, \@group;
    }
    return @circles;
}

1;
