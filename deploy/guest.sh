#!/usr/bin/env bash
# Runs a shell command in a virtual machine with Debian's kernel, which has what
# a container has not: the unified cgroup hierarchy (version 2), PSI, and with
# --systemd a live systemd. Prints what the command prints, exits as it does:
#   deploy/guest.sh [--systemd] [--threads] [--newest] [--swap] [--dir DIR]... [--limit SECONDS] COMMAND
# The contents of each DIR appear at / of the guest. With --systemd the command is
# a service with Delegate=yes; with --threads each of its two cores has two hardware
# threads; with --newest the kernel is the newest that apt's sources have, such as
# that of backports, in place of the release's own; with --swap it may swap 256 MiB. After SECONDS (1800) the guest is killed: status 124.
#
# Where the CPU cannot virtualise, QEMU emulates it, and CPU work takes about ten
# times as long: the guest shows that things work, never how fast.
#
# What it lacks it takes from Debian: qemu-system-x86, busybox-static, cpio and
# for --systemd mmdebstrap are installed (which needs root), kernel and systemd
# are unpacked under ~/.cache/trimtab/guest and never installed.
set -euo pipefail
systemd='' limit=1800 dirs=() smp=2 intel='' newest='' swap=''
while [[ ${1-} == --* ]]; do
  case $1 in
    --systemd) systemd=yes ;;
    --threads) smp=4,sockets=1,cores=2,threads=2 intel=,vendor=GenuineIntel ;; # others tell of threads differently
    --newest) newest=yes ;;
    --swap) swap='insmod /brd rd_nr=1 rd_size=262144; mkswap /dev/ram0 >/dev/null; swapon /dev/ram0' ;;
    --dir) dirs+=("$2"); shift ;;
    --limit) limit=$2; shift ;;
    *) echo "guest.sh: unknown option $1" >&2; exit 2 ;;
  esac
  shift
done

cache=${XDG_CACHE_HOME:-$HOME/.cache}/trimtab/guest
mkdir -p "$cache"
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT

debian() { # debian PROGRAM PACKAGE: installs the package when the program is not there
  command -v "$1" >/dev/null && return
  apt-get update -qq >&2
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$2" >/dev/null
}

kernel() { # unpacks a kernel for virtual machines, and sets image
  local package
  image=$cache/vmlinuz
  if [ -n "$newest" ]; then
    package=$(apt-cache pkgnames linux-image- | grep -E '^linux-image-[0-9]+\.[0-9]+\.[0-9].*-cloud-amd64$' | sort -V | tail -n 1)
    image=$cache/vmlinuz-$package
  fi
  [ -e "$image" ] && [ -e "$image-brd" ] && return
  mkdir "$work/kernel"
  package=${package-$(apt-cache depends linux-image-cloud-amd64 | awk '$1 == "Depends:" && $2 ~ /^linux-image/ { print $2; exit }')}
  (cd "$work/kernel" && apt-get download -qq "$package" 2>/dev/null && dpkg -x ./*.deb .)
  cp "$work"/kernel/lib/modules/*/kernel/drivers/block/brd.ko* "$image-brd" # a disk in memory, to swap to
  cp "$work"/kernel/boot/vmlinuz-* "$image"
}

userland() { # unpacks a Debian with systemd as process 1, which is not configured
  [ -e "$cache/systemd/etc/machine-id" ] && return
  local root=$work/systemd mirror
  mirror=$(apt-get indextargets --format '$(RELEASE) $(REPO_URI)' | awk '$1 == "bookworm" { print $2; exit }')
  if [ -z "$mirror" ]; then
    echo "guest: find a source of Debian bookworm: apt has none; add one to its sources and run apt-get update" >&2
    return 1
  fi
  mmdebstrap --quiet --variant=extract --include=systemd-sysv,dbus,bash,coreutils,grep,base-files,base-passwd,util-linux \
    bookworm "$root" "$mirror"
  cp "$root/usr/share/base-passwd/passwd.master" "$root/etc/passwd"
  cp "$root/usr/share/base-passwd/group.master" "$root/etc/group"
  echo 'messagebus:x:100:100::/:/usr/sbin/nologin' >>"$root/etc/passwd"
  echo 'messagebus:x:100:' >>"$root/etc/group"
  rm -rf "$root"/usr/share/{doc,man,locale,zoneinfo} "$root"/usr/lib/{udev,systemd/{system,user}-generators} "$root"/var/{lib/apt,lib/dpkg,cache}
  ln -sf bash "$root/bin/sh"
  : >"$root/etc/machine-id"
  rm -rf "$cache/systemd"
  mv "$root" "$cache/systemd"
}

# The last thing that either kind of guest does. $1 is what runs the command.
finish() { echo "$1 /command </dev/null; echo guest: exit \$?; sleep 0.2; busybox reboot -f"; }

plain() { # process 1 is a shell: it makes what systemd would, and runs the command
  mkdir -p "$work/root"/{proc,sys,dev,tmp,run,etc,root,var/lib}
  echo root:x:0:0:root:/root:/bin/sh >"$work/root/etc/passwd"
  echo 127.0.0.1 localhost >"$work/root/etc/hosts"
  cat >"$work/root/init" <<INIT
#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin HOME=/root
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs -o mode=1777 tmp /tmp
mount -t tmpfs run /run
mount -t cgroup2 cgroup2 /sys/fs/cgroup
ip link set lo up
$swap
for c in \$(cat /sys/fs/cgroup/cgroup.controllers); do echo +\$c >/sys/fs/cgroup/cgroup.subtree_control; done
cd /root
$(finish sh)
INIT
  chmod +x "$work/root/init"
}

live() { # process 1 is systemd: it runs the command as guest.service
  local units=$work/root/etc/systemd/system unit
  mkdir -p "$units"
  ln -s /lib/systemd/systemd "$work/root/init"
  finish bash >"$work/root/finish"
  printf '[Unit]\nRequires=basic.target dbus.socket\nWants=guest.service\n' >"$units/default.target"
  cat >"$units/guest.service" <<'UNIT'
[Unit]
After=basic.target dbus.socket
[Service]
Type=oneshot
Delegate=yes
Environment=PATH=/bin:/usr/bin:/sbin:/usr/sbin HOME=/root
WorkingDirectory=/root
StandardOutput=tty
StandardError=tty
TTYPath=/dev/console
ExecStart=/bin/bash /finish
UNIT
  for unit in systemd-{udevd,udev-trigger,journal-flush,timesyncd,update-utmp,random-seed,firstboot,hwdb-update,sysusers,tmpfiles-setup,tmpfiles-setup-dev} ldconfig getty@tty1; do
    ln -s /dev/null "$units/$unit.service"
  done
}

debian qemu-system-x86_64 qemu-system-x86
debian busybox busybox-static
debian cpio cpio
kernel
mkdir -p "$work/root/bin"
if [ -n "$systemd" ]; then
  debian mmdebstrap mmdebstrap
  userland
  live
  dirs=("$cache/systemd" "${dirs[@]}")
  # /bin is a link there.
  mkdir -p "$work/root/usr/bin"; rmdir "$work/root/bin"
  cp "$(command -v busybox)" "$work/root/usr/bin"
else
  plain
  cp "$(command -v busybox)" "$work/root/bin"
  [ -z "$swap" ] || cp "$image-brd" "$work/root/brd"
fi
printf '%s\n' "$*" >"$work/root/command"
for dir in ${dirs[@]+"${dirs[@]}"} "$work/root"; do
  (cd "$dir" && find . | cpio --quiet -o -H newc)
done >"$work/initrd"

# /dev/kvm may be there without what a kernel of Debian's needs of it.
accel=tcg cpu=max$intel
if grep -qwE 'svm|vmx' /proc/cpuinfo && { : <>/dev/kvm; } 2>/dev/null; then
  accel=kvm cpu=host
else
  echo "guest: no KVM here, the CPU is emulated: this shows that things work, not how fast" >&2
fi
status=0
timeout -k 5 "$limit" qemu-system-x86_64 -accel $accel -cpu $cpu -smp $smp -m 2048 \
  -M q35,sata=off,smbus=off,usb=off -nodefaults -no-user-config -no-reboot -display none -nic none -serial stdio \
  -kernel "$image" -initrd "$work/initrd" \
  -append "console=ttyS0 quiet panic=-1 cgroup_no_v1=all psi=1" </dev/null |
  tr -d '\r' | tee "$work/output" | grep --line-buffered -v '^guest: exit ' || status=${PIPESTATUS[0]}
if [ "$status" = 124 ]; then echo "guest: killed after $limit s" >&2; exit 124; fi
said=$(sed -n 's/^guest: exit //p' "$work/output")
exit "${said:-125}"
