#!/bin/sh
# A file can be newer than CLOCK_REALTIME_COARSE, the clock that file times used to come from.
#
# Kernel: 6.18, ext4 (since 6.13 some file systems give a finer time to a file whose time was read).
# Setting: write a file, read its time with stat, write it again, then read the coarse clock.
# Seen: in all of 200 tries the time of the second write is later than what the coarse clock says
# afterwards, and never later than the fine clock. So a program that waits until the coarse clock
# moves, to be sure that the next file it makes has another time, may wait too briefly: the clock
# has moved, and is still behind the file.
#
# Needs python3 and a temporary folder on such a file system. Ends within a second.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 - "$dir" <<'PY'
import os, sys, time
name = os.path.join(sys.argv[1], "file")
COARSE = 5  # CLOCK_REALTIME_COARSE of linux/time.h

def write():
    with open(name, "w") as f:
        f.write("x")

ahead = beyond = 0
for _ in range(200):
    write()
    os.stat(name)
    write()
    coarse, fine = time.clock_gettime_ns(COARSE), time.clock_gettime_ns(time.CLOCK_REALTIME)
    after = os.stat(name).st_mtime_ns
    ahead += after > coarse
    beyond += after > fine
    time.sleep(0.0007)
print("kernel %s: of 200 files whose time was read before they were written again, %d are newer than the coarse clock, %d newer than the fine clock"
      % (os.uname().release, ahead, beyond))
if ahead < 100 or beyond:
    sys.exit("file-times-ahead-of-the-coarse-clock: this kernel or file system does otherwise")
PY
