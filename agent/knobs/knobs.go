package knobs

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/config"
)

// Declared has the knobs of a workload as the configuration declares them, before they are opened.
type Declared struct {
	Kind string
	At   actuator.Location
	// Place is the name of the location in messages; like has a target for each resource.
	Place string
	Like  []actuator.Target
	// Cap is how the configuration wants CPU time limited: see [config.CPUBounds].
	Cap string
	// admits, if not nil, is the one limit of requests that is meant of those at the location.
	admits *config.Admission
}

// Of lists the knobs of all workloads that a host has.
func Of(kinds []actuator.Kind, cfg *config.Config, host string) (out []Declared, err error) {
	for i := range cfg.Workloads {
		w := &cfg.Workloads[i]
		if w.Knob.Bounds() == nil && w.Knob.Memory == nil || !w.Knob.Declared() || !w.OnHost(host) {
			continue
		}
		name, root, path := cfg.Location(&w.Knob)
		places := []Declared{{Kind: name, At: actuator.Location{Root: root, Path: path, Force: w.Knob.Force, High: w.Class == trimtab.BestEffort}}}
		for _, further := range []func() (kind, root, path string, ok bool){w.Knob.Link, w.Knob.Scale} {
			if name, root, path, ok := further(); ok {
				places = append(places, Declared{Kind: name, At: actuator.Location{Root: root, Path: path}})
			}
		}
		for _, a := range w.Knob.Admissions() {
			places = append(places, Declared{Kind: a.Kind, At: actuator.Location{Root: a.Root, Path: a.Path, Class: a.Class, Exact: a.Value > 0}, admits: &a})
		}
		if w.Knob.CPU != nil {
			places[0].Cap = w.Knob.CPU.Cap
		}
		if m := w.Knob.Memory; m != nil && m.Runtime != nil {
			kind, server := m.Runtime.Program()
			places[0].At.Runtime = actuator.Runtime{Kind: kind, Address: server.Address, User: server.User, PasswordFile: server.PasswordFile, Wait: m.Runtime.Wait}
		}
		for _, d := range places {
			d, err := d.probe(kinds, w)
			if err != nil {
				return nil, fmt.Errorf("open knob of %s: %w", w.Name, err)
			}
			out = append(out, d)
		}
	}
	return out, nil
}

// probe completes a declared location, and adds the resources of its kind for which the workload
// has bounds.
func (d Declared) probe(kinds []actuator.Kind, w *config.Workload) (Declared, error) {
	d.Place = d.Kind + " " + d.At.Path
	kind, err := actuator.KindOf(kinds, d.Kind)
	if err == nil {
		d.At, err = kind.Probe(d.At)
	}
	if err != nil {
		return Declared{}, err
	}
	for _, resource := range kind.Resources {
		b, ok := w.Knob.BoundsOf(resource)
		t := actuator.Target{KnobID: trimtab.KnobID{Workload: w.Name, Resource: resource}, Min: b.Min, Max: b.Max, Mode: w.Mode}
		if a := d.admits; a != nil {
			if t.KnobID.Instance = a.Instance(); a.Class != "" {
				t.Min, t.Max = a.Value, a.Value
			}
			ok = ok && a.Resource == resource
		}
		if ok {
			d.Like = append(d.Like, t)
		}
	}
	return d, nil
}

// OpenAll opens the knobs that are declared, and makes finders of the patterns,
// one for each workload.
func OpenAll(kinds []actuator.Kind, all []Declared) (targets []actuator.Target, finders []actuator.Finder, err error) {
	for _, d := range all {
		var opened []actuator.Target
		kind, err := actuator.KindOf(kinds, d.Kind)
		switch {
		case err != nil:
		case d.At.Several():
			finders = append(finders, kind.Finder(d.At, d.Place, d.Like))
		default:
			opened, err = kind.Targets(d.At, d.Like)
		}
		if err != nil {
			return nil, nil, errors.Join(err, actuator.CloseTargets(targets))
		}
		targets = append(targets, opened...)
	}
	return targets, finders, nil
}

// Measure returns a function that measures this host's capacity for the pool, by resource, if a
// kind of its knobs can measure it; nil: none can.
func Measure(kinds []actuator.Kind, cfg *config.Config, all []Declared) func() (map[string]float64, error) {
	measures := map[string]func() (float64, error){}
	for _, d := range all {
		kind, err := actuator.KindOf(kinds, d.Kind)
		if err != nil || kind.Measure == nil {
			continue
		}
		for _, t := range d.Like {
			measures[t.Resource] = func() (float64, error) { return kind.Measure(d.At, t.Resource) }
		}
	}
	if len(measures) == 0 {
		return nil
	}
	reserve := cfg.Actuator.Reserve
	return func() (map[string]float64, error) {
		capacity := map[string]float64{}
		var errs []error
		for _, resource := range slices.Sorted(maps.Keys(measures)) {
			v, err := measures[resource]()
			switch {
			case errors.Is(err, trimtab.ErrUnsupported): // a tree of plain files is not the capacity of a host
			case err != nil:
				errs = append(errs, err)
			default:
				capacity[resource] = max(0, v-reserve.Of(resource))
			}
		}
		return capacity, errors.Join(errs...)
	}
}

// Roots returns the location whose capacity Measure measures, by resource, with symbolic links
// resolved, so that two pools that share one group have the same name for it.
func Roots(kinds []actuator.Kind, all []Declared) map[string]string {
	roots := map[string]string{}
	for _, d := range all {
		if kind, err := actuator.KindOf(kinds, d.Kind); err != nil || kind.Measure == nil {
			continue
		}
		root, err := filepath.EvalSymlinks(d.At.Root)
		if err != nil {
			root = d.At.Root // it does not exist yet
		}
		if root, err = filepath.Abs(root); err != nil {
			continue
		}
		for _, t := range d.Like {
			roots[t.Resource] = root
		}
	}
	return roots
}

// LockDir is the directory of the locks of knobs: the configured one, else the host's.
func LockDir(cfg *config.Config) string {
	if dir := cfg.Actuator.LockDir; dir != "" {
		return dir
	}
	return actuator.DefaultLockDir()
}
