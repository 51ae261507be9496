package cgroup

import (
	"fmt"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/trimtab/trimtab"
)

// owned reports whose the knob's group is.
func (k *CPU) owned() error { return owned(&k.config) }

// owned returns an error that is trimtab.ErrRefused when systemd owns the
// group: it is or lies in a unit that was not delegated. systemd marks
// delegated groups with an extended attribute (Delegate= in systemd.resource-
// control; user.delegate since version 251 also for user services).
func owned(c *Config) error {
	if c.Force {
		return nil
	}
	unit := ""
	for group := filepath.Join(c.Root, c.Path); group != "/" && group != "."; group = filepath.Dir(group) {
		if !isUnit(filepath.Base(group)) {
			continue
		}
		if unit == "" {
			unit = filepath.Base(group)
		}
		if delegated(group) {
			return nil
		}
	}
	if unit == "" {
		return nil
	}
	return fmt.Errorf("cgroup %s belongs to the systemd unit %s, which would write over it; set Delegate=yes in the unit, or force in the knob: %w",
		c.Path, unit, trimtab.ErrRefused)
}

// delegated reports whether systemd marked the group as given away.
func delegated(group string) bool {
	for _, attribute := range []string{"trusted.delegate", "user.delegate"} {
		var b [8]byte
		// An error means that it is not marked, or that nobody may know.
		if n, err := unix.Getxattr(group, attribute, b[:]); err == nil && string(b[:n]) == "1" {
			return true
		}
	}
	return false
}

// isUnit reports whether systemd names its groups like this.
func isUnit(name string) bool {
	for _, suffix := range []string{".service", ".scope", ".slice"} {
		if strings.HasSuffix(name, suffix) {
			return true
		}
	}
	return false
}
