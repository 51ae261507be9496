package rdt

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// Root is the conventional mount point of the file system.
const Root = "/sys/fs/resctrl"

// Files are the operations on a resctrl tree. Names are relative to its root, which is
// the default group ("" as a directory). Errors wrap the kernel's number.
type Files interface {
	Read(name string) (string, error)
	// Write hands a value to a file in one write(2).
	Write(name, value string) error
	Mkdir(name string) error
	Rmdir(name string) error
	// Dirs lists the directories in a directory.
	Dirs(name string) ([]string, error)
	// Writable says whether this process may write a file.
	Writable(name string) error
	// Lock excludes other programs that lock, as the kernel's documentation asks of all that make
	// changes in several writes.
	Lock(ctx context.Context) (unlock func(), err error)
	Close() error
}

// maxTasks bounds a list of tasks: a million of them.
const maxTasks = 8 << 20

// lockWait is how long a change waits for a change by another program.
const lockWait = time.Second

// Open opens the tree at root. The error is trimtab.ErrUnsupported if the host has none, and says
// what is missing; it is also os.ErrNotExist, since nothing is limited there.
func Open(root string) (Files, error) {
	r, err := hostfs.OpenRoot(root)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("no resctrl at %s: the kernel was built without it, or the CPU has neither cache allocation, bandwidth allocation nor their monitors: %w: %w", root, trimtab.ErrUnsupported, os.ErrNotExist)
	}
	if err != nil {
		return nil, fmt.Errorf("open resctrl: %w", err)
	}
	if r.Filesystem() != hostfs.Resctrl {
		return nil, errors.Join(fmt.Errorf("resctrl is not mounted at %s (mount -t resctrl resctrl %s): %w: %w", root, root, trimtab.ErrUnsupported, os.ErrNotExist), r.Close())
	}
	return tree{r}, nil
}

// tree is the kernel's tree.
type tree struct{ *hostfs.Root }

// Read reads a file of any length that the kernel has.
func (t tree) Read(name string) (string, error) { return t.ReadLong(name, maxTasks) }

// Dirs lists the directories in a directory.
func (t tree) Dirs(name string) ([]string, error) {
	name = cmp.Or(name, ".")
	return t.Root.Dirs(name)
}

// Lock takes flock(LOCK_EX) on the root.
func (t tree) Lock(ctx context.Context) (func(), error) { return t.Flock(ctx, lockWait) }

// statusFile is the file in which the kernel explains why the last command failed.
const statusFile = "info/last_cmd_status"

// Explain adds the kernel's explanation of the last command to its error.
func Explain(f Files, err error) error {
	if err == nil {
		return nil
	}
	text, bad := f.Read(statusFile)
	why := strings.Join(strings.Fields(text), " ")
	if bad != nil || why == "" || why == "ok" {
		return err
	}
	return fmt.Errorf("%w (last_cmd_status: %.200s)", err, why)
}

// Prefix begins the names of the groups that trimtab makes; no other group is ever changed.
const Prefix = "trimtab-"

// Group returns the name of the resctrl group for a control group: from its path and its inode,
// so that a new group at the same path gets another name.
func Group(place string, id uint64) string {
	return Prefix + HashOf(place) + "-" + strconv.FormatUint(id, 16)
}

// HashOf returns the part of a group's name that stands for the path.
func HashOf(place string) string {
	sum := sha256.Sum256([]byte(place))
	return hex.EncodeToString(sum[:8])
}

// Location returns the path of a control group with the links in root resolved, whether it exists or
// not.
func Location(root, path string) string {
	if real, err := filepath.EvalSymlinks(root); err == nil {
		root = real
	}
	if abs, err := filepath.Abs(root); err == nil {
		root = abs
	}
	return filepath.Join(root, path)
}
