package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// owned returns an error that is trimtab.ErrRefused when systemd owns the
// group: it is or lies in a unit that was not delegated. systemd marks
// delegated groups with an extended attribute (Delegate= in systemd.resource-
// control; user.delegate since version 251 also for user services).
func owned(c *Config) error {
	if c.Force {
		return nil
	}
	unit, top := "", ""
	for group := filepath.Join(c.Root, c.Path); group != "/" && group != "."; group = filepath.Dir(group) {
		if !isUnit(filepath.Base(group)) {
			continue // checking the name first is cheaper
		}
		if top == "" {
			if top = managedTop(group); top == "" {
				return nil
			}
		}
		if in, ok := strings.CutPrefix(group, top+"/"); !ok || unitAt(in) == "" {
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
	advice := "set Delegate=yes in the unit"
	if strings.HasSuffix(unit, ".slice") { // systemd never delegates a slice
		advice = "name a group below a service with Delegate=yes"
	}
	return fmt.Errorf("cgroup %s belongs to the systemd unit %s, which would write over it; %s, or force in the knob: %w",
		c.Path, unit, advice, trimtab.ErrRefused)
}

// managedTop returns the directory below which a systemd has its units, in the group's hierarchy;
// "": no systemd manages the groups there, whatever their names. It is the outermost directory
// with init.scope, systemd's own group, which a container with the host's hierarchy sees as well.
// In version 1 that scope may exist only in systemd's own hierarchy; if systemd is process 1
// nothing more is required.
func managedTop(group string) string {
	top, scoped := "", ""
	for dir := group; dir != "/" && dir != "."; {
		dir = filepath.Dir(dir)
		if isDir(filepath.Join(dir, "init.scope")) {
			scoped = dir
		}
		if inHierarchy(dir) {
			top = dir
		}
	}
	if scoped != "" || top == "" {
		return scoped
	}
	if _, err := os.Stat(managed); err == nil {
		return top
	}
	if twin := hostfs.Sibling(top, "systemd"); twin != "" && isDir(filepath.Join(twin, "init.scope")) {
		return top
	}
	return ""
}

// unitIs returns the systemd unit whose own group this is, in either version of cgroups; "": it is
// no unit's, or no systemd manages the groups there.
func unitIs(c *Config) string {
	group := filepath.Join(c.Root, c.Path)
	if !isUnit(filepath.Base(group)) {
		return ""
	}
	top := managedTop(group)
	if top == "" {
		return ""
	}
	return unitAt(strings.TrimPrefix(group, top+"/"))
}

// inHierarchy reports whether a directory is a real control group.
func inHierarchy(dir string) bool {
	var s unix.Statfs_t
	return unix.Statfs(dir, &s) == nil && (s.Type == unix.CGROUP2_SUPER_MAGIC || s.Type == unix.CGROUP_SUPER_MAGIC)
}

func isDir(name string) bool {
	s, err := os.Stat(name)
	return err == nil && s.IsDir()
}

// delegated reports whether systemd marked the group as delegated.
func delegated(group string) bool {
	for _, attribute := range []string{"trusted.delegate", "user.delegate"} {
		var b [8]byte
		// On an error the group counts as not marked.
		if n, err := unix.Getxattr(group, attribute, b[:]); err == nil && string(b[:n]) == "1" {
			return true
		}
	}
	return false
}

// isUnit reports whether a name has the form of a systemd unit with a control group.
func isUnit(name string) bool {
	for _, suffix := range []string{".service", ".scope", ".slice"} {
		if strings.HasSuffix(name, suffix) {
			return true
		}
	}
	return false
}
