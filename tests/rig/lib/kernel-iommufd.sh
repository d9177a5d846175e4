# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# Debian's own kernel with iommufd, which it is built without: VFIO's modules are built anew.

# kernel_iommufd DIR LOG: a copy of Debian's kernel, whose VFIO has iommufd.
kernel_iommufd() {
    local dir=$1 log=$2 debian version new
    debian=$(kernel_root trixie && echo "$KERNEL_ROOT")
    version=$(basename "$debian"/usr/lib/modules/*)
    # As long as Debian's, to be written over it. Debian's own modules fit: of them only the symbols are compared.
    new=${version/deb13/iommu}
    say "building VFIO's modules with iommufd (a minute, once): $log"
    kernel_source "$dir" "$log" drivers/iommu drivers/vfio lib/interval_tree.c
    cp -al "$debian" "$dir/root"
    nice unshare --mount --propagation private bash "$RIG_DIR/lib/in-tree" "$CACHE/mnt" "$debian:$L1_TREE" \
        "$dir/work" /work "$dir/root/usr/src" /usr/src "$dir/root/usr/lib/modules" /usr/lib/modules \
        "$RIG_DIR/kernel" /config "$CACHE/ccache" /ccache \
        -- sh /config/iommufd.sh "$new" >>"$log" 2>&1 || fail "kernel build" "VFIO's modules" "$log"
    rm -rf "$dir/work"
    rm -r "$dir/root/boot"
    LC_ALL=C sed "s/$version/$new/g" "$debian/../vmlinux" >"$dir/vmlinux"
    # depmod's files are links of Debian's.
    rm "$dir"/root/usr/lib/modules/*/modules.{dep,alias,symbols,softdep,devname,weakdep}*
    kernel_finish "$dir" "$log"
}
