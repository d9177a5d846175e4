# SPDX-License-Identifier: MIT
# The cases of test-backend-ops that are run. It has 22,000, most of which take minutes under emulation: the emulated
# processor makes and checks tensors, and software Vulkan needs seconds to compile a shader. So some of each operation
# are taken, spread evenly over the small ones, in the program's own order: the same cases for the same version.
package Conformance::Cases;

use strict;
use warnings;

use List::Util qw(max product);

# No tensor has more elements than this.
my $small = 65536;

# Cases of each operation. A few have more, because each of their data types has a shader of its own.
my $usual = 1;
my %count = (CPY => 4, GET_ROWS => 5, SET_ROWS => 5, MUL_MAT => 5);

# Of these only cases that match: software Vulkan needs more than 20 s for a shader of most others.
my $none = qr/^\z/;
my %only = (
    MUL_MAT => qr/type_a=(?!iq).*m=16,n=1,.*bs=\[1,1\],nr=\[1,1\],per=\[0,1,2,3\],k_v=0,o=1/,
    MUL_MAT_ID => qr/,n=1,/,
    MUL_MAT_ID_W4A8 => $none,
    MUL_MAT_ID_W4A4 => $none,
    MUL_MAT_W4A8 => $none,
    MUL_MAT_W4A4 => $none,
    CONV_1D_DW => qr/type_kernel=f16,stride=1,padding=0/,
    FLASH_ATTN_EXT => qr/hsk=64,.*nr23=\[1,1\],kv=113,nb=1,mask=1,sinks=0,max_bias=0.*type_K=f16/,
    GET_ROWS => qr/type=(?!iq)/,
);

# At least as many elements as the largest tensor of a case has, by its parameters: shapes are lists in brackets, and
# often multiply each other; numbers are taken for one shape.
sub elements {
    my ($params) = @_;
    my @shapes = map { split /,/ } $params =~ /\[([\d,]+)\]/g;
    my $rest = $params =~ s/\[[^\]]*\]//gr;
    return max(map { product(1, grep { $_ } @$_) } \@shapes, [$rest =~ /=(\d+)(?=,|$)/g]);
}

# $csv: the output of `test-backend-ops support --output csv`. Returns [operation, [case...]]..., the supported ones.
sub all {
    my ($csv) = @_;
    my (@operations, %cases, %seen);
    for my $line (grep { /^"Vulkan/ } split /\n/, $csv) {
        my (undef, $operation, $params, undef, $supported) = $line =~ /"([^"]*)"/g;
        next if !$supported || $seen{"$operation($params)"}++;
        push @operations, $operation if !$cases{$operation};
        push @{ $cases{$operation} }, $params;
    }
    return map { [$_, $cases{$_}] } @operations;
}

# $n of a list, spread evenly.
sub spread {
    my ($n, @list) = @_;
    return @list if @list <= $n;
    return map { $list[int($_ * @list / $n)] } 0 .. $n - 1;
}

sub of_operation {
    my ($operation, @params) = @_;
    my $only = $only{$operation};
    my @these = grep { !$only || $_ =~ $only } @params;
    my @little = grep { elements($_) <= $small } @these;
    # Cases that are large only by the rule above: the smallest of them.
    @little = ((sort { elements($a) <=> elements($b) } @these)[0]) if @these && !@little;
    @little = @these if $only && @these;
    return map { "$operation($_)" } spread($count{$operation} // $usual, @little);
}

sub pick { my ($csv) = @_; return map { of_operation($_->[0], @{ $_->[1] }) } all($csv) }

1;
