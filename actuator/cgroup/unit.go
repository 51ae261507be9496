package cgroup

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/godbus/dbus/v5"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hostfs"
)

const (
	// hierarchy is where systemd mounts cgroup version 2.
	hierarchy = "/sys/fs/cgroup/"
	// managed exists if systemd is process 1; see sd_booted(3).
	managed = "/run/systemd/system"
	// manager is the socket on which root reaches systemd, also without a D-Bus daemon.
	manager = "unix:path=/run/systemd/private"
)

// unitOf returns the systemd unit that owns this group, or "". At every daemon-reload systemd
// writes the unit's values into the files of the group, Delegate=yes or not; so a value that must
// last is set through systemd. Only groups whose parents are all slices are units: groups below a
// service or scope are not, whatever their names.
func unitOf(root *hostfs.Root, group string) string {
	if root.Filesystem() != hostfs.Cgroup2 {
		return ""
	}
	if _, err := os.Stat(managed); err != nil {
		return ""
	}
	dir, err := filepath.EvalSymlinks(root.Path())
	if err != nil {
		return ""
	}
	in, ok := strings.CutPrefix(filepath.Join(dir, group), hierarchy)
	if !ok {
		return ""
	}
	return unitAt(in)
}

// unitAt returns the unit that owns the group at a path of the hierarchy, or "".
func unitAt(path string) string {
	parts := strings.Split(path, "/")
	last := len(parts) - 1
	for _, slice := range parts[:last] {
		if !strings.HasSuffix(slice, ".slice") {
			return ""
		}
	}
	if !isUnit(parts[last]) {
		return ""
	}
	// systemd puts a _ before a name that could be mistaken for a file of the kernel.
	return strings.TrimPrefix(parts[last], "_")
}

// setUnit sets a property of a unit until the next boot, as `systemctl
// set-property --runtime` does.
func setUnit(ctx context.Context, unit, property string, value any) error {
	if err := callManager(ctx, unit, property, value); err != nil {
		return fmt.Errorf("set %s of the systemd unit %s: %w", property, unit, err)
	}
	return nil
}

func callManager(ctx context.Context, unit, property string, value any) error {
	bus, err := dbus.Dial(manager, dbus.WithContext(ctx))
	if err != nil {
		return err
	}
	defer func() { _ = bus.Close() }() // the call has returned
	if err := bus.Auth(nil); err != nil {
		return err
	}
	type setting struct {
		Name  string
		Value dbus.Variant
	}
	const runtime = true
	return bus.Object("org.freedesktop.systemd1", "/org/freedesktop/systemd1").
		CallWithContext(ctx, "org.freedesktop.systemd1.Manager.SetUnitProperties", 0,
			unit, runtime, []setting{{property, dbus.MakeVariant(value)}}).Err
}

// infinity is systemd's value for "no limit".
const infinity = math.MaxUint64

// perSecond converts cores to systemd's CPUQuotaPerSecUSec: microseconds of CPU time per
// second.
func perSecond(a trimtab.Amount) uint64 {
	if a.Unlimited {
		return infinity
	}
	return uint64(max(1, math.Round(min(a.Value, 1<<20)*1e6)))
}

// wholePercent returns the quota that a daemon-reload leaves in force: systemd applies any quota at
// once, but stores it in whole percents of a core, rounded down.
func wholePercent(a trimtab.Amount, period int64) trimtab.Amount {
	if a.Unlimited {
		return a
	}
	percent := int64(max(1, math.Floor(min(a.Value, 1<<20)*100+1e-6)))
	if micros := percent * period / 100; micros >= hostfs.MinQuota {
		return hostfs.Quota{Micros: micros, Period: period}.Amount()
	}
	return trimtab.Units(float64(percent) / 100) // a quota below the kernel's least: systemd lengthens the period
}
