package actuator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// Kind describes a kind of knob, with all that the rest of the program needs to know of it. The
// folder of each kind has a function that returns its Kind; the program lists them.
type Kind struct {
	// Name is the name of the kind in configuration and messages.
	Name string
	// Resources are the resources whose limits this kind can set at one location.
	Resources []string
	// Probe completes a declared location with the defaults of this host, such as the root. Its
	// error is trimtab.ErrUnsupported if the host has no such knobs.
	Probe func(declared Location) (Location, error)
	// Find lists the instances that match a location with a *. Its errors are those of
	// [Finder].Find.
	Find func(ctx context.Context, at Location) ([]Instance, error)
	// Open opens the knob of one resource at a location without a *.
	Open func(at Location, resource string) (Knob, error)
	// Reopen makes a knob from the result of its Undo, perhaps of another process or release. Its
	// error is trimtab.ErrUnsupported if that belongs to another kind.
	Reopen func(undo []byte) (Knob, error)
	// Live is true if another program starts the instances and each starts with an allocation, as a
	// pod does. The actuator then looks for new instances before it raises any limit.
	Live bool
	// Measure returns the capacity of a resource on this host, or trimtab.ErrUnsupported if
	// that is unknown. A nil Measure: unknown for every resource.
	Measure func(at Location, resource string) (float64, error)
}

// Join adds the resources of other kinds to the first. All of them use the same locations, and
// Probe and Find of the first.
func Join(first Kind, more ...Kind) Kind {
	all := append([]Kind{first}, more...)
	of := func(resource string) Kind {
		for _, k := range all {
			if slices.Contains(k.Resources, resource) {
				return k
			}
		}
		return first
	}
	joined := first
	joined.Resources = nil
	for _, k := range all {
		joined.Resources = append(joined.Resources, k.Resources...)
	}
	joined.Open = func(at Location, resource string) (Knob, error) { return of(resource).Open(at, resource) }
	joined.Reopen = func(undo []byte) (Knob, error) { return AnyOf(all)(undo) }
	joined.Measure = func(at Location, resource string) (float64, error) {
		if measure := of(resource).Measure; measure != nil {
			return measure(at, resource)
		}
		return 0, fmt.Errorf("measure %s: %w", resource, trimtab.ErrUnsupported)
	}
	return joined
}

// Location says where the knobs of a workload are on this host.
type Location struct {
	// Root is the declared directory; trimtab never writes outside it.
	Root string
	// Path is relative to Root. If it has a *, each match is an instance.
	Path string
	// Force sets limits even if another program of the host owns them.
	Force bool
	// Class names the requests that a limit is for, as what enforces it does; "": all requests.
	Class string
	// Exact: what enforces a limit of requests may not correct it by what it sees.
	Exact bool
	// High prefers the highest-numbered units of a resource, such as cores, and leaves the
	// lowest-numbered to others. It is for best-effort jobs.
	High bool
	// ShareUnit is the amount of CPU time, in cores, to which the default weight of a group
	// corresponds, if amounts are set as weights below a parent group that carries the limit; 0:
	// amounts are set as quotas.
	ShareUnit float64
	// ShareMost is the most CPU time that a group may use if ShareUnit is set, in cores; 0: as much
	// as its parent.
	ShareMost float64
	// Runtime is a program of the group that is told before its memory limit falls.
	Runtime Runtime
}

// Runtime is how to reach a program that limits its own memory; the zero Runtime: there is none.
type Runtime struct {
	// Kind is jvm, go, redis or postgres.
	Kind string `json:"kind"`
	// Address is where it listens: an absolute path of a Unix socket in the root directory of its
	// process, or HOST:PORT of Redis. A JVM has none.
	Address string `json:"address,omitempty"`
	// User logs in with the content of PasswordFile; "": without.
	User         string `json:"user,omitempty"`
	PasswordFile string `json:"password_file,omitempty"`
	// Wait is how long a fall waits for the memory.
	Wait time.Duration `json:"wait_ns"`
}

// Several reports whether the location is a pattern.
func (l Location) Several() bool { return strings.Contains(l.Path, "*") }

// Instance returns the location of one instance of a pattern.
func (l Location) Instance(name string) Location {
	l.Path = strings.Replace(hostfs.PlainPattern(l.Path), "*", name, 1)
	return l
}

// Targets opens the knobs of a location, one for each target in like, which has no knob. It opens
// all of them or none.
func (k Kind) Targets(at Location, like []Target) (targets []Target, err error) {
	for _, t := range like {
		if t.Knob, err = k.Open(at, t.Resource); err != nil {
			return nil, errors.Join(fmt.Errorf("open %s knob of %s: %w", t.Resource, t.Workload, err), CloseTargets(targets))
		}
		targets = append(targets, t)
	}
	return targets, nil
}

// CloseTargets closes the knobs of targets that were not handed to an actuator.
func CloseTargets(targets []Target) (err error) {
	for _, t := range targets {
		err = errors.Join(err, t.Knob.Close())
	}
	return err
}

// Finder finds the instances of one workload at a location with a *. Each gets the targets of like,
// which must not be empty; messages call the location pattern.
func (k Kind) Finder(at Location, pattern string, like []Target) Finder {
	return Finder{
		Workload: like[0].Workload, Pattern: pattern, Like: like, Live: k.Live,
		Find: func(ctx context.Context) ([]Instance, error) { return k.Find(ctx, at) },
		Open: func(name string) ([]Target, error) { return k.Targets(at.Instance(name), like) },
	}
}

// OrNil returns a nil interface with an error, never an interface that holds a nil pointer.
func OrNil[K Knob](knob K, err error) (Knob, error) {
	if err != nil {
		return nil, err
	}
	return knob, nil
}

// KindOf returns the kind of that name.
func KindOf(kinds []Kind, name string) (Kind, error) {
	for _, k := range kinds {
		if k.Name == name {
			return k, nil
		}
	}
	return Kind{}, fmt.Errorf("kind of knob %q: %w", name, trimtab.ErrUnsupported)
}
