package freezer

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator/cgroup"
)

const (
	// state1 is the state file of version 1's freezer; self1 is the file that says whether this
	// group itself was asked to freeze.
	state1, self1 = "freezer.state", "freezer.self_freezing"
	// freeze2, kill2 and events2 are the files of version 2.
	freeze2, kill2, events2 = "cgroup.freeze", "cgroup.kill", "cgroup.events"
	// procs lists the processes of a group without its child groups, in both versions.
	procs = "cgroup.procs"
)

// Config names the group.
type Config = cgroup.Config

// group has the common parts of both switches.
type group struct{ *cgroup.Files }

func openGroup(c Config) (group, error) {
	f, err := cgroup.OpenFiles(c)
	return group{f}, err
}

func (g group) version() int { return g.Version(state1) }

// file returns the file that freezes the group.
func (g group) file() string {
	if g.version() == 1 {
		return state1
	}
	return freeze2
}

// maker names what provides that file.
func (g group) maker() string {
	if g.version() == 1 {
		return "the freezer controller"
	}
	return "Linux from 5.2 on"
}

// frozenBySelf reports whether this group itself was asked to freeze, whatever the state of its
// parents.
func (g group) frozenBySelf() (bool, error) {
	if g.version() == 2 {
		return g.flag(freeze2)
	}
	on, err := g.flag(self1)
	if errors.Is(err, os.ErrNotExist) {
		var state string
		state, err = g.state()
		return state != "THAWED", err
	}
	return on, err
}

// frozen reports whether all processes are frozen now, by this group or a parent.
func (g group) frozen() (bool, error) {
	if g.version() == 2 {
		return g.event("frozen")
	}
	state, err := g.state()
	return state == "FROZEN", err
}

// refrozen reports whether the group is frozen, and asks again if not. Version 1 asks each process
// once. A parent in vfork then sleeps until its child, which is frozen, continues, so the group
// stays FREEZING for ever. When asked again, the kernel counts the sleeping parent as frozen.
func (g group) refrozen() (bool, error) {
	on, err := g.frozen()
	if on || err != nil || g.version() != 1 {
		return on, err
	}
	if on, err = g.frozenBySelf(); !on || err != nil {
		return false, err // another program thawed it meanwhile
	}
	if err = g.freeze(true); err != nil {
		return false, err
	}
	return g.frozen()
}

// freeze requests freezing or thawing the group.
func (g group) freeze(on bool) error {
	switch {
	case g.version() == 1 && on:
		return g.Write(state1, "FROZEN")
	case g.version() == 1:
		return g.Write(state1, "THAWED")
	case on:
		return g.Write(freeze2, "1")
	}
	return g.Write(freeze2, "0")
}

// state reads the state file of version 1; reading makes the kernel check the processes again.
func (g group) state() (string, error) {
	state, err := g.Read(state1)
	if err == nil && !slices.Contains([]string{"THAWED", "FREEZING", "FROZEN"}, state) {
		err = trimtab.Invalidf("%s %.40q of cgroup %s: want THAWED, FREEZING or FROZEN", state1, state, g.Group())
	}
	return state, err
}

// flag reads a file with 0 or 1.
func (g group) flag(name string) (bool, error) {
	text, err := g.Read(name)
	if err == nil && text != "0" && text != "1" {
		err = trimtab.Invalidf("%s %.40q of cgroup %s: want 0 or 1", name, text, g.Group())
	}
	return text == "1", err
}

// event reads one value of version 2's cgroup.events.
func (g group) event(name string) (bool, error) {
	text, err := g.Read(events2)
	if err != nil {
		return false, err
	}
	for line := range strings.Lines(text) {
		if key, value, _ := strings.Cut(strings.TrimSpace(line), " "); key == name && (value == "0" || value == "1") {
			return value == "1", nil
		}
	}
	return false, trimtab.Invalidf("%s %.80q of cgroup %s: no %s", events2, text, g.Group(), name)
}

// spared returns an error if the group contains this process or process 1.
func (g group) spared() error {
	all, err := cgroup.Processes(g.Root(), g.Group())
	if err != nil {
		return err
	}
	for _, pid := range all {
		if pid == os.Getpid() || pid == 1 {
			return fmt.Errorf("process %d is in it, which is trimtab or the system's first: %w", pid, trimtab.ErrRefused)
		}
	}
	return nil
}

// nearest returns 1 for amounts of at least 0.5 and for unlimited, else 0.
func nearest(a trimtab.Amount) trimtab.Amount {
	if a.Unlimited {
		return trimtab.Units(1)
	}
	return trimtab.Units(min(1, math.Round(a.Value)))
}

func units(on bool) trimtab.Amount {
	if on {
		return trimtab.Units(1)
	}
	return trimtab.Units(0)
}
