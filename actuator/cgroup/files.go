package cgroup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
	"syscall"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// Files reads and writes the kernel's files of one control group below a declared root. All
// knobs of control groups use it, also those of other packages.
type Files struct {
	config Config
	root   *hostfs.Root
	closed bool
}

// OpenFiles opens the root. The group may not exist yet.
func OpenFiles(c Config) (*Files, error) {
	if len(c.Parents) > 0 {
		return nil, trimtab.Invalidf("cgroup %s: only parents of a quota are raised", c.Path)
	}
	if c.Path = path.Clean(c.Path); c.Path == "." || path.IsAbs(c.Path) || c.Path == ".." || strings.HasPrefix(c.Path, "../") {
		return nil, trimtab.Invalidf("cgroup %q: want a path relative to the root %s", c.Path, c.Root)
	}
	root, err := c.Roots.root(c.Root)
	if err != nil {
		return nil, fmt.Errorf("open cgroup %s: %w", c.Path, err)
	}
	return &Files{config: c, root: root}, nil
}

// Config returns the configuration, with a clean path.
func (f *Files) Config() Config { return f.config }

// Group returns the path of the group, relative to the root.
func (f *Files) Group() string { return f.config.Path }

// Root returns the declared directory.
func (f *Files) Root() *hostfs.Root { return f.root }

// Close releases the root. Closing again does nothing.
func (f *Files) Close() error {
	if f.closed {
		return nil
	}
	f.closed = true
	f.root.Forget(f.config.Path)
	return f.root.Close()
}

// Version returns the cgroup version, 1 or 2. In a tree of plain files (tests) it is 1 if
// the group has the file only1, which only version 1 has.
func (f *Files) Version(only1 string) int {
	switch f.root.Filesystem() {
	case hostfs.Cgroup1:
		return 1
	case hostfs.Cgroup2:
		return 2
	}
	if ok, err := f.root.Exists(path.Join(f.config.Path, only1)); ok && err == nil {
		return 1
	}
	return 2
}

// Read returns the content of a file of the group, without the space around it.
func (f *Files) Read(name string) (string, error) { return f.ReadOf(f.config.Path, name) }

// ReadOf reads a file of another group below the root, without the space around its content.
func (f *Files) ReadOf(group, name string) (string, error) {
	text, err := f.root.Read(path.Join(group, name))
	return strings.TrimSpace(text), gone(err)
}

// Write writes a value to a file of the group.
func (f *Files) Write(name, value string) error {
	return gone(f.root.Write(path.Join(f.config.Path, name), value))
}

// gone adds os.ErrNotExist to ENODEV, the kernel's answer if the group was removed after
// its file was opened.
func gone(err error) error {
	if errors.Is(err, syscall.ENODEV) {
		return fmt.Errorf("%w: %w", err, os.ErrNotExist)
	}
	return err
}

// Probe returns an error unless the group exists and has the file name. The error names maker, such
// as "the cpuset controller", as what would create that file.
func (f *Files) Probe(ctx context.Context, maker, name string) error {
	err := ctx.Err()
	if err == nil {
		var ok bool
		if ok, err = f.root.Exists(f.config.Path); err == nil && !ok {
			err = os.ErrNotExist
		}
	}
	if err == nil {
		if _, err = f.Read(name); errors.Is(err, os.ErrNotExist) {
			err = fmt.Errorf("it has no %s, which %s makes: %w", name, maker, trimtab.ErrUnsupported)
		}
	}
	if err != nil {
		return fmt.Errorf("probe cgroup %s in %s: %w", f.config.Path, f.config.Root, err)
	}
	return nil
}

// Owned returns trimtab.ErrRefused if systemd owns the group.
func (f *Files) Owned() error { return owned(&f.config) }

// MayWrite returns an error if systemd owns the group, or this process has no right to
// write the file.
func (f *Files) MayWrite(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("probe cgroup %s: %w", f.config.Path, err)
	}
	if err := f.Owned(); err != nil {
		return err
	}
	return f.root.Writable(path.Join(f.config.Path, name))
}

// Location returns the group's directory with symbolic links resolved.
func (f *Files) Location() (string, error) { return location(&f.config) }

// Unit returns the systemd unit that owns this group, or "". A value that must outlive a
// daemon-reload of such a unit is set by SetUnit.
func (f *Files) Unit() string { return unitOf(f.root, f.config.Path) }

// SetUnit sets a property of the unit until the next boot.
func (f *Files) SetUnit(ctx context.Context, property string, value any) error {
	return setUnit(ctx, f.Unit(), property, value)
}
