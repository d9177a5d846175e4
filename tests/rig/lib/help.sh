# shellcheck shell=bash
# SPDX-License-Identifier: MIT

usage() {
    cat <<'EOF'
usage: rig [--name NAME] VERB …

A virtual GPU host (L1) and its tenants' VMs (L2), on any Debian 12 or 13 machine, as root. NAME
(or RIG_NAME) tells several rigs apart. Exit status and output are those of the command that is
run; 125 says that the rig itself failed, 2 that it was called wrongly.

L1
  up [--kernel 6.1|6.12|6.12-debug|7.2]   (6.12)     boots L1
     [--gpu pci|soft|none]     (pci)      a PCI GPU behind the IOMMU; or L1's own CPU; or nothing
     [--gpus N]                (1)        PCI display functions in all, each alone in its group
     [--init minimal|systemd]  (minimal)  a shell in seconds; or a host as operators have it
     [--memory 3G] [--cpus 2] [--append KERNEL-WORDS]
  up --from LABEL              comes back as it was saved, guests included
  run [--] CMD…                runs CMD in L1 as root
  put FILE… PLACE, get FILE… PLACE        copies to and from L1
  shell                        a shell in L1
  log                          L1's console: kernel messages, oopses
  monitor LINE                 a line for L1's QEMU's monitor, such as 'info lapic 1'
  save LABEL                   saves L1 and its guests (not with --gpu pci)
  reboot                       reboots L1, started with --init systemd, from its own disk
  down                         ends everything that belongs to the rig

guests in L1
  guest NAME up [--memory 1G] [--cpus 1] [--init minimal|systemd] [--viommu] [-- QEMU-OPTION…]
  guest NAME run [--] CMD…, put …, get …, log, down
  guest NAME monitor LINE      a line for its QEMU's monitor; hotplug ports are rp0 to rp3
  guest NAME adopt ADDRESS     a guest that libvirt runs gets run, put and get

beside
  build [--kernel K] [--with LIST] [--] CMD…
                                runs CMD natively in L1's Debian tree, in the checkout (/src), with
                                the headers of kernel K, and the packages that the file LIST names
  apt [--guest] PACKAGE…        adds Debian packages to L1, or to the guests' image, from now on
  prepare [--kernel K]          builds or downloads all that `up` would, and starts nothing
  status                        rigs, guests and saved states
  clean                         removes from the cache what this version of the rig does not use
  path run|tree|cache|kernel [K]  where things are

The cache is MDEV_VGPU_CACHE (/var/cache/mdev-vgpu).
EOF
}
