#!/bin/bash
# Runs a command as a container platform would run it from an image with a read-only root: as PID 1, as an ordinary user
# without any capability, with a tmpfs at /run/edge as the only place to write to.
#
#   unshare --mount --pid --fork tests/e2e/container.sh FOLDER UID GID COMMAND...
#
# The root is this machine's, read-only, with FOLDER/image/usr/local in place of its /usr/local; FOLDER/root is where it is
# put together. Mounts vanish with the namespace.
set -euo pipefail

folder=$1 uid=$2 gid=$3
shift 3
root=$folder/root

mkdir -p "$root"
mount --rbind / "$root"
mount --bind "$folder/image/usr/local" "$root/usr/local"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mkdir "$root/run/edge"
# What the kernel shows of itself refuses that; the test looks for itself what can be written to.
awk -v root="$root" 'index($5, root) == 1 { print $5 }' /proc/self/mountinfo | while read -r place; do
    mount -o remount,bind,ro "$place" 2>/dev/null || true
done
mount -t tmpfs -o mode=1777,noexec,nosuid,nodev tmpfs "$root/run/edge"
mount -t proc proc "$root/proc"
exec chroot "$root" setpriv --reuid "$uid" --regid "$gid" --clear-groups --no-new-privs --inh-caps=-all --bounding-set=-all \
    "$@"
