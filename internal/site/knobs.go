package site

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/cgroup"
	"github.com/trimtab/trimtab/actuator/cpufreq"
	"github.com/trimtab/trimtab/actuator/cpuset"
	"github.com/trimtab/trimtab/actuator/freezer"
	"github.com/trimtab/trimtab/actuator/kubernetes"
	"github.com/trimtab/trimtab/actuator/network"
	"github.com/trimtab/trimtab/actuator/process"
	"github.com/trimtab/trimtab/actuator/resctrl"
	"github.com/trimtab/trimtab/config"
)

// kinds are the kinds of knobs that this program has. Another kind is another line.
func kinds() []actuator.Kind { return kindsOn(resctrl.Host{}) }

// kindsOn are the kinds on a host with such a resctrl.
func kindsOn(rdt resctrl.Host) []actuator.Kind {
	return kindsIn(rdt, kubernetes.Cluster{Watched: noCluster})
}

// kindsIn are the kinds on a host that sees a cluster.
func kindsIn(rdt resctrl.Host, cluster kubernetes.Cluster) []actuator.Kind {
	return []actuator.Kind{
		actuator.Join(cgroup.Kind(), cpuset.Kind(), freezer.Kind(), resctrl.Kind(rdt), cpufreq.Kind()),
		network.Kind(),
		process.Kind(),
		kubernetes.Pods(cluster),
		kubernetes.Scales(cluster),
	}
}

// rdtOf is this host's resctrl for an actuator with locks in a directory: what it leaves
// behind tells by them whose it is.
func rdtOf(locks string) resctrl.Host {
	return resctrl.Host{Places: func(ctx context.Context) (map[string]bool, error) {
		return actuator.Places(ctx, locks, trimtab.LLC, trimtab.MemBW)
	}}
}

// Reopen makes a knob from the journal alone.
func Reopen(undo []byte) (actuator.Knob, error) { return actuator.AnyOf(kinds())(undo) }

// knobConfig is the knobs of a workload as the file says it, before they are opened.
type knobConfig struct {
	kind string
	at   actuator.Location
	// place is what messages call the location, like has a target for each resource.
	place string
	like  []actuator.Target
	// cap is how the file has CPU time bounded: see [config.CPUBounds].
	cap string
}

// kindOf returns the kind of that name.
func kindOf(kinds []actuator.Kind, name string) (actuator.Kind, error) {
	for _, k := range kinds {
		if k.Name == name {
			return k, nil
		}
	}
	return actuator.Kind{}, fmt.Errorf("kind of knob %q: %w", name, trimtab.ErrUnsupported)
}

// knobsOf lists the knobs of all workloads that a host has.
func knobsOf(kinds []actuator.Kind, cfg *config.Config, host string) (out []knobConfig, err error) {
	for i := range cfg.Workloads {
		w := &cfg.Workloads[i]
		if w.Knob.Bounds() == nil || !w.Knob.Declared() || !onHost(w, host) {
			continue
		}
		name, root, path := cfg.Place(&w.Knob)
		places := []knobConfig{{kind: name, at: actuator.Location{Root: root, Path: path, Force: w.Knob.Force, High: w.Class == trimtab.BestEffort}}}
		if name, root, path, ok := w.Knob.Link(); ok {
			places = append(places, knobConfig{kind: name, at: actuator.Location{Root: root, Path: path}})
		}
		if name, root, path, ok := w.Knob.Scale(); ok {
			places = append(places, knobConfig{kind: name, at: actuator.Location{Root: root, Path: path}})
		}
		if w.Knob.CPU != nil {
			places[0].cap = w.Knob.CPU.Cap
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

// probe completes a location as it was declared, and adds the resources of its kind
// that the workload has bounds of.
func (d knobConfig) probe(kinds []actuator.Kind, w *config.Workload) (knobConfig, error) {
	d.place = d.kind + " " + d.at.Path
	kind, err := kindOf(kinds, d.kind)
	if err == nil {
		d.at, err = kind.Probe(d.at)
	}
	if err != nil {
		return knobConfig{}, err
	}
	for _, resource := range kind.Resources {
		if b, ok := w.Knob.BoundsOf(resource); ok {
			d.like = append(d.like, actuator.Target{KnobID: trimtab.KnobID{Workload: w.Name, Resource: resource}, Min: b.Min, Max: b.Max, Mode: w.Mode})
		}
	}
	return d, nil
}

// openAll opens the knobs that are declared, and makes finders of the patterns,
// one for each workload.
func openAll(kinds []actuator.Kind, all []knobConfig) (targets []actuator.Target, finders []actuator.Finder, err error) {
	for _, d := range all {
		var opened []actuator.Target
		kind, err := kindOf(kinds, d.kind)
		switch {
		case err != nil:
		case d.at.Several():
			finders = append(finders, kind.Finder(d.at, d.place, d.like))
		default:
			opened, err = kind.Targets(d.at, d.like)
		}
		if err != nil {
			return nil, nil, errors.Join(err, actuator.CloseTargets(targets))
		}
		targets = append(targets, opened...)
	}
	return targets, finders, nil
}

// measureOf measures what the pool may give out of this host, of the resources that
// its knobs turn and their kinds can measure; nil where there is none.
func measureOf(kinds []actuator.Kind, cfg *config.Config, all []knobConfig) func() (map[string]float64, error) {
	measures := map[string]func() (float64, error){}
	for _, d := range all {
		kind, err := kindOf(kinds, d.kind)
		if err != nil || kind.Measure == nil {
			continue
		}
		for _, t := range d.like {
			measures[t.Resource] = func() (float64, error) { return kind.Measure(d.at, t.Resource) }
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
			case errors.Is(err, trimtab.ErrUnsupported): // a tree of plain files is no host's
			case err != nil:
				errs = append(errs, err)
			default:
				capacity[resource] = max(0, v-reserve.Of(resource))
			}
		}
		return capacity, errors.Join(errs...)
	}
}
