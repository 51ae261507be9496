package beside

import (
	"cmp"
	"context"
	"path"
	"path/filepath"
	"slices"

	"github.com/trimtab/trimtab/actuator/cpuset"
	"github.com/trimtab/trimtab/actuator/placed"
	"github.com/trimtab/trimtab/actuator/task"
	"github.com/trimtab/trimtab/agent/signals"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/planner/throttle"
	"github.com/trimtab/trimtab/speculation"
)

// pins binds tasks to the cores of their class: the policy says how many cores are second class,
// pins chooses which.
type pins struct {
	// cores are the cores that tasks may use, each with its threads; nil: tasks are not bound.
	cores []cpuset.Set
	// held returns the CPUs that are reserved for services.
	held func() cpuset.Set
	// now has the CPUs of the second class; nil: there are no two classes.
	now cpuset.Set
	// last has the CPUs to which each task was bound last; absent: to all.
	last map[task.ID]string
}

// openPins finds the CPUs that tasks may use. Its error says why tasks cannot be bound.
func openPins(r interface{ CPUs() (string, error) }, root string, services []signals.Service) (*pins, error) {
	text, err := r.CPUs()
	if err != nil {
		return nil, err
	}
	all, err := cpuset.ParseSet(text)
	if err != nil {
		return nil, err
	}
	topology, err := new(cpuset.Machine).Topology()
	if err != nil {
		return nil, err
	}
	return &pins{cores: topology.Cores(all), held: func() cpuset.Set { return heldBy(root, all, services) }, last: map[task.ID]string{}}, nil
}

// heldBy returns the CPUs of all services that are bound to some of the CPUs.
func heldBy(root string, all cpuset.Set, services []signals.Service) (held cpuset.Set) {
	sets, err := hostfs.OpenRoot(cmp.Or(hostfs.Sibling(root, "cpuset"), root))
	if err != nil {
		return nil // the cpuset hierarchy is gone: nothing is bound
	}
	defer sets.Close()
	for _, of := range services {
		found, _ := filepath.Glob(filepath.Join(sets.Path(), of.Path)) // the configuration validates patterns
		for _, dir := range found {
			group, err := filepath.Rel(sets.Path(), dir)
			if err != nil {
				continue
			}
			text, err := sets.Read(path.Join(group, "cpuset.cpus"))
			if err != nil {
				continue // the group ended, or has no cpuset of its own
			}
			if set, err := cpuset.ParseSet(text); err == nil && len(set) > 0 && !set.Covers(all) {
				held = held.Or(set)
			}
		}
	}
	return held
}

// second chooses the cores of the second class: the highest-numbered ones that no service
// has for itself, since services with a knob take the lowest. A core is of one class with
// all its threads, so the first class may have a little more than it asks for. nil: there
// are no two classes.
func (p *pins) second(c throttle.Classes, held cpuset.Set) (set cpuset.Set) {
	if c.First <= 0 || c.Second <= 0 {
		return nil
	}
	left := -c.First
	for _, core := range p.cores {
		left += len(core)
	}
	for _, core := range slices.Backward(p.cores) {
		if len(core) > left {
			break
		}
		if !core.Meets(held) {
			set, left = set.Or(core), left-len(core)
		}
	}
	return set
}

// classify chooses the cores of the second class again.
func (h *taskHost) classify(c throttle.Classes) {
	if h.pins == nil {
		return
	}
	h.pins.now = h.pins.second(c, h.pins.held())
	h.metrics.Gauge("trimtab_speculate_second_class_cpus", h.host).Set(float64(len(h.pins.now)))
}

// cpusOf returns the CPUs on which an attempt must run; "": all.
func (h *taskHost) cpusOf(a *placed.Attempt) string {
	if h.pins == nil || a.Class == speculation.RegularTask || h.known.classes[a.AttemptID] == throttle.First {
		return ""
	}
	return h.pins.now.String()
}

// bind binds running tasks to the cores of their class, if they are not bound to them yet.
func (h *taskHost) bind(ctx context.Context) {
	if h.pins == nil {
		return
	}
	for _, a := range h.ledger.Attempts() {
		id, cpus := a.AttemptID, h.cpusOf(&a)
		i := h.known.infos[id]
		if a.State != placed.Running || i.State != task.Running && i.State != task.Frozen || cpus == h.pins.last[id] {
			continue
		}
		// An error is reported; the next choice of other cores tries again.
		if h.turns.begin(ctx, id, turnBind, func(ctx context.Context) error { return h.runner.Pin(ctx, id, cpus) }) {
			h.pins.last[id] = cpus
		}
	}
}
