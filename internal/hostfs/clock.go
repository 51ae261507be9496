package hostfs

import (
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// BootTime returns the time since the host booted, with the time it slept.
// No step of the wall clock changes it.
func BootTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		// CLOCK_BOOTTIME exists since Linux 2.6.39.
		panic("hostfs: clock_gettime CLOCK_BOOTTIME: " + err.Error())
	}
	return time.Duration(t.Nano())
}

// BootID names this boot: a [BootTime] of another boot means nothing.
func BootID() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("read boot id: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}

// ClockKept reports whether the kernel considers the wall clock synchronised, by chrony,
// systemd-timesyncd or another program, and by how much it may be wrong.
func ClockKept() (kept bool, within time.Duration, err error) {
	var t unix.Timex
	if _, err := unix.Adjtimex(&t); err != nil {
		return false, 0, fmt.Errorf("ask for the state of the clock: %w", err)
	}
	return t.Status&unix.STA_UNSYNC == 0, time.Duration(t.Maxerror) * time.Microsecond, nil
}
