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
	// hierarchy is where systemd mounts version 2.
	hierarchy = "/sys/fs/cgroup/"
	// managed is there where systemd is process 1: sd_booted(3).
	managed = "/run/systemd/system"
	// manager is where root speaks with it, with or without a message bus.
	manager = "unix:path=/run/systemd/private"
)

// unitOf returns the unit whose own group this is, where the system's systemd
// lives; else "". It sets the files of such a group from the unit at every
// daemon-reload, Delegate=yes or not: what is to stay there is set through it.
// Its services and scopes lie in slices, and nothing else does; groups beneath
// them, also those with such names, belong to others.
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

// unitAt returns the unit of a path in the hierarchy, or "".
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
	// systemd escapes what would be taken for another kind of file of the kernel's.
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
	defer func() { _ = bus.Close() }() // all was answered
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

// infinity is a property without limit.
const infinity = math.MaxUint64

// perSecond returns an amount as systemd has it: microseconds in a second.
func perSecond(a trimtab.Amount) uint64 {
	if a.Unlimited {
		return infinity
	}
	return uint64(max(1, math.Round(min(a.Value, 1<<20)*1e6)))
}

// wholePercent returns the quota that a unit keeps: at once systemd sets any, but
// what it stores, and sets again at daemon-reload, are whole percents of a core,
// rounded down.
func wholePercent(a trimtab.Amount, period int64) trimtab.Amount {
	if a.Unlimited {
		return a
	}
	percent := int64(max(1, math.Floor(min(a.Value, 1<<20)*100+1e-6)))
	if micros := percent * period / 100; micros >= hostfs.MinQuota {
		return hostfs.Quota{Micros: micros, Period: period}.Amount()
	}
	return trimtab.Units(float64(percent) / 100) // systemd makes the period longer
}
