package cgroup

import (
	"fmt"
	"path"
	"strings"

	"github.com/trimtab/trimtab"
)

// owned returns an error that is trimtab.ErrRefused when systemd owns the
// group: it is or lies in a unit that was not delegated. systemd marks
// delegated groups with an extended attribute (Delegate= in systemd.resource-
// control; user.delegate since version 251 also for user services).
func (k *CPU) owned() error {
	if k.config.Force {
		return nil
	}
	unit := ""
	for group := k.config.Path; group != "."; group = path.Dir(group) {
		if !isUnit(path.Base(group)) {
			continue
		}
		if unit == "" {
			unit = group
		}
		for _, attribute := range []string{"trusted.delegate", "user.delegate"} {
			if v, ok := k.root.Attribute(group, attribute); ok && v == "1" {
				return nil
			}
		}
	}
	if unit == "" {
		return nil
	}
	return fmt.Errorf("cgroup %s belongs to the systemd unit %s, which would write over it; set Delegate=yes in the unit, or force in the knob: %w",
		k.config.Path, path.Base(unit), trimtab.ErrRefused)
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
