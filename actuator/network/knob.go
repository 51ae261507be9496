package network

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
)

// Config names the interface.
type Config struct {
	// Root is the directory with the files of network namespaces, such as /run/netns; Namespace is
	// the name of one; both "": the namespace of this process.
	Root      string `json:"root,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Interface string `json:"interface"`
}

// file is the namespace's file; "": the namespace of this process.
func (c *Config) file() string {
	if c.Namespace == "" {
		return ""
	}
	return filepath.Join(c.Root, c.Namespace)
}

func (c *Config) validate() error {
	if !plain(c.Interface) || len(c.Interface) >= unix.IFNAMSIZ {
		return trimtab.Invalidf("interface %.40q: want the name of one, of at most %d bytes", c.Interface, unix.IFNAMSIZ-1)
	}
	if c.Namespace != "" && (!plain(c.Namespace) || !filepath.IsAbs(c.Root)) {
		return trimtab.Invalidf("network namespace %.40q in %.40q: want the name of a file in an absolute folder", c.Namespace, c.Root)
	}
	return nil
}

// plain reports whether a name is a single part of a path.
func plain(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, "/\x00 \n*")
}

// Interface is the send rate of one interface. It is an [actuator.Knob]. It opens the namespace for
// each use, since the namespace comes and goes with its container.
type Interface struct{ config Config }

// Traits returns the optional abilities of this knob.
func (k *Interface) Traits() actuator.Traits {
	return actuator.Traits{Location: k.Location}
}

// Open checks the names only; Probe checks whether the interface exists.
func Open(c Config) (*Interface, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &Interface{c}, nil
}

// kind is the format name in what Undo returns.
const kind = "network-tbf/1"

// Reopen opens the knob that undo describes; see [actuator.Reopen].
func Reopen(undo []byte) (*Interface, error) { return actuator.Reopen(kind, undo, Open) }

// Undo describes the knob for Reopen. The state before a limit is always the kernel's default, so
// it is not recorded.
func (k *Interface) Undo() []byte { return actuator.UndoOf(kind, k.config) }

// String names interface and namespace.
func (k *Interface) String() string {
	if k.config.Namespace == "" {
		return "interface " + k.config.Interface
	}
	return "interface " + k.config.Interface + " of network namespace " + k.config.Namespace
}

// Resource returns "network".
func (k *Interface) Resource() string { return trimtab.Network }

// Location identifies the interface by the inode of its namespace.
func (k *Interface) Location() (string, error) { return location(k.config.file(), k.config.Interface) }

// Close does nothing: nothing is kept open.
func (k *Interface) Close() error { return nil }

// Probe returns an error unless the interface exists and has the kernel's default discipline or
// trimtab's.
func (k *Interface) Probe(ctx context.Context) error {
	_, err := k.Read(ctx)
	return err
}

// MayWrite returns an error if this process may not set disciplines.
func (k *Interface) MayWrite(ctx context.Context) error {
	if err := k.Probe(ctx); err != nil {
		return err
	}
	var data [2]unix.CapUserData
	if err := unix.Capget(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &data[0]); err != nil {
		return fmt.Errorf("probe %s: %w", k, err)
	}
	if data[0].Effective&(1<<unix.CAP_NET_ADMIN) == 0 {
		return fmt.Errorf("probe %s: this process has not the capability CAP_NET_ADMIN: %w", k, unix.EPERM)
	}
	return nil
}

// Read returns the rate of the token bucket in bytes per second, unlimited where the
// interface has none.
func (k *Interface) Read(ctx context.Context) (trimtab.Amount, error) {
	if err := ctx.Err(); err != nil {
		return trimtab.Amount{}, fmt.Errorf("read %s: %w", k, err)
	}
	s, err := enter(k.config.file())
	if err != nil {
		return trimtab.Amount{}, err
	}
	defer s.Close()
	l, err := s.link(k.config.Interface)
	if err != nil {
		return trimtab.Amount{}, err
	}
	v, err := s.read(l)
	return v.Amount, err
}

// Nearest rounds to whole bytes per second, from 1000 on.
func (k *Interface) Nearest(a trimtab.Amount) trimtab.Amount {
	if a.Unlimited {
		return a
	}
	return trimtab.Units(math.Round(math.Min(math.Max(a.Value, least), most)))
}

// Write sets the rate with one message to the kernel.
func (k *Interface) Write(ctx context.Context, a trimtab.Amount) error {
	if err := errors.Join(ctx.Err(), a.Validate()); err != nil {
		return fmt.Errorf("write %s: %w", k, err)
	}
	s, err := enter(k.config.file())
	if err != nil {
		return err
	}
	defer s.Close()
	l, err := s.link(k.config.Interface)
	if err != nil {
		return err
	}
	now, err := s.read(l)
	if err != nil {
		return err
	}
	return s.write(l, now, k.Nearest(a))
}
