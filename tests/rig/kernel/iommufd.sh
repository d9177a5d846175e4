#!/bin/sh
# SPDX-License-Identifier: MIT
#
# iommufd.sh VERSION - runs in L1's tree with Debian's kernel, in the kernel's source: builds VFIO's modules anew, with
# iommufd, and puts them in place of Debian's. The headers say so, too: what is built for the kernel is built for these. It
# is called VERSION, so that nothing is taken for what was built for Debian's.

set -eu

debian=$(ls /usr/lib/modules)
headers=/usr/src/linux-headers-$debian
modules=/usr/lib/modules/$1/kernel/drivers
mv "/usr/lib/modules/$debian" "/usr/lib/modules/$1"

# unshared FILE: without what else it may be a link of.
unshared() { cp "$1" "$1.new" && mv "$1.new" "$1"; }

for file in include/generated/autoconf.h include/generated/utsrelease.h include/config/auto.conf include/config/kernel.release \
    Module.symvers; do
    unshared "$headers/$file"
done
sed -i "s/$debian/$1/" "$headers/include/generated/utsrelease.h" "$headers/include/config/kernel.release"
cat >>"$headers/include/generated/autoconf.h" <<'EOT'
#define CONFIG_IOMMUFD_MODULE 1
#define CONFIG_IOMMUFD_DRIVER 1
#define CONFIG_INTERVAL_TREE_SPAN_ITER 1
#define CONFIG_VFIO_DEVICE_CDEV 1
EOT
cat >>"$headers/include/config/auto.conf" <<'EOT'
CONFIG_IOMMUFD=m
CONFIG_IOMMUFD_DRIVER=y
CONFIG_INTERVAL_TREE_SPAN_ITER=y
CONFIG_VFIO_DEVICE_CDEV=y
EOT

# What iommufd has in the kernel itself is part of its module here.
cd drivers
{
    echo '#include <linux/interval_tree.h>'
    sed -n '/^#ifdef CONFIG_INTERVAL_TREE_SPAN_ITER/,/^#endif/p' ../lib/interval_tree.c | grep -v EXPORT_SYMBOL
} >iommu/iommufd/span_iter.c
sed -i 's/^obj-.*iova_bitmap.o//; s/vfio_compat.o/vfio_compat.o span_iter.o iova_bitmap.o/' iommu/iommufd/Makefile
echo 'obj-y := iommu/iommufd/ vfio/' >Kbuild
make -C "$headers" M="$PWD" -j"$(nproc)" modules

find "$modules/vfio" -name '*.ko*' -delete
for module in $(cd . && find iommu/iommufd vfio -name '*.ko'); do
    mkdir -p "$modules/$(dirname "$module")"
    strip -g -o "$modules/$module" "$module"
done

# Our symbols instead of those of the same names.
awk -F '\t' 'NR == FNR { ours[$2] = 1; print; next } !($2 in ours)' Module.symvers "$headers/Module.symvers" >symvers
mv symvers "$headers/Module.symvers"
