#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# Each vgpuctl command that a page shows exists, and has the options that it is shown with.
use strict;
use warnings;
use Test::More;

binmode Test::More->builder->$_, ':encoding(UTF-8)' for qw(output failure_output);

sub slurp { my ($path) = @_; open my $file, '<:encoding(UTF-8)', $path or die "$path: $!\n"; local $/; return <$file> }

# "slice create", "run" and the like, of the table in command.c.
my %known = map { join(' ', /"(\w+)"/g) => 1 } slurp('host-agent/vgpuctl/command.c') =~ /^    \{("\w+", (?:"\w+"|NULL)),/mg;

my %help;
sub help_of {
    my ($command) = @_;
    return $help{$command} //= `build/host-agent/vgpuctl $command --help 2>&1`;
}

# The commands of a page: blocks of code, and spans between backticks. Comments and other commands of a line are cut off.
sub shown {
    my ($text) = @_;
    $text =~ s/\\\n\s*//g;
    my @blocks = $text =~ /^(?: {4,}|```\n)[^\n]*?\b(vgpuctl [^\n]*)/mg;
    my @spans = $text =~ /`(vgpuctl\s[^`]*)`/g;
    return map { s/\s+/ /gr } map { s/(?: -- |\s#|[;&`]|\s\|\s|\|\s|\)).*//sr } @blocks, @spans;
}

for my $page ('README.md', 'CONTRIBUTING.md', glob('docs/*.md'), 'tests/cuda/RESULTS-h200.md') {
    for my $line (shown(slurp($page))) {
        my (undef, @words) = split ' ', $line;
        # "suspend|resume" are two commands; an option may come first.
        my @names = grep { !/^-/ } @words;
        # COMMAND stands for any.
        next if !@names || $names[0] =~ /^[A-Z]/;
        for my $verb (@names > 1 ? split /\|/, $names[1] : '') {
            my ($command) = grep { $known{$_} } "$names[0] $verb", $names[0];
            my $fault = $command ? join(' ', grep { help_of($command) !~ /\Q$_\E(?![\w-])/ } map { /^(--[a-z-]+)/ ? $1 : () } @words) : 'no such command';
            is($fault // '', '', "$page: $line");
        }
    }
}
done_testing();
