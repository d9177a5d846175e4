# shellcheck shell=bash
# SPDX-License-Identifier: MIT

usage() {
    cat <<'EOT'
usage: rig [--name NAME] VERB …

A virtual GPU host (L1) and its tenants' VMs (L2), on any Debian 12 or 13 machine, as root. NAME
(or RIG_NAME) tells several rigs apart. Exit status and output are those of the command that is
run; 75 says that the rig itself failed, 2 that it was called wrongly.

L1
  up [--kernel KERNEL]          (trixie)   boots L1. KERNEL: bookworm (or 6.1), trixie (6.12),
                                           trixie-debug (6.12-debug), trixie-iommufd (6.12-iommufd),
                                           backports, or a directory with boot/vmlinuz-VERSION
                                           and lib/modules/VERSION
     [--accel auto|kvm|tcg]     (auto)     auto is tcg: no run with kvm has been seen yet
     [--gpu pci|soft|none]      (pci)      a PCI GPU behind the IOMMU; or L1's own CPU; or nothing
     [--gpus N]                 (1)        PCI display functions in all, each alone in its group
     [--init minimal|systemd]   (minimal)  a shell in seconds; or a host as operators have it
     [--packages FILE]                     more Debian packages for this start
     [--image sid|backports|bookworm|cloud] one more image for guests; repeatable
     [--memory 3G] [--cpus 2] [--append KERNEL-WORDS]
  up --from LABEL               restores a saved L1 with its guests
  run [--timeout S] [--] CMD…   runs CMD in L1 as root; 124 if it is not done after S seconds
  put FILE… PLACE, get FILE… PLACE         copies to and from L1
  ssh-command [GUEST]           prints the ssh command to which a quoted remote command is appended
  shell                         a shell in L1
  save LABEL                    saves L1 and its guests (not with --gpu pci)
  reboot [--kernel KERNEL]      reboots L1, started with --init systemd, from its own disk; into
                                another kernel if that is installed there
  down                          ends everything that belongs to the rig, and removes its logs

guests in L1
  guest NAME up [--memory 1G] [--cpus 1] [--init minimal|systemd] [--viommu]
                [--image trixie|sid|backports|bookworm] [-- QEMU-OPTION…]
  guest NAME run [--timeout S] [--] CMD…, put …, get …, log, down
  guest NAME monitor LINE       a line for its QEMU's monitor; hotplug ports are rp0 to rp3
  guest NAME adopt ADDRESS      adds run, put and get for a guest that libvirt runs

what happened
  status [--json]               rigs, guests and saved states
  log                           L1's console: kernel messages, oopses
  logs DIR                      keeps consoles, dmesg and monitor output, also of a dead rig
  fault [--recorded A B]        status 0 and a sentence if QEMU's monitor proves the rig's one known
                                fault: a processor of L1 gets no interrupts. Else 1
  monitor LINE                  a line for L1's QEMU's monitor, such as 'info lapic 1'

beside
  build [--kernel K] [--with LIST] [--] CMD…
                                runs CMD natively in L1's Debian tree, in the checkout (/src), with
                                the headers of kernel K, the packages that the file LIST names, and
                                ccache in front of every compiler
  apt [--guest] PACKAGE…        adds Debian packages to L1, or to the guests' image, from now on
  prepare [--kernel K] [--debs DIR]
                                builds or downloads all that `up` would, and starts nothing;
                                DIR/debs gets the packages of Debian's kernel K
  clean                         removes from the cache what this version of the rig does not use
  path run|tree|cache|kernel [K]           prints where things are

The cache is MDEV_VGPU_CACHE (/var/cache/mdev-vgpu).
EOT
}
