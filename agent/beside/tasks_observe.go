package beside

import (
	"maps"
	"math"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator/placed"
	"github.com/trimtab/trimtab/actuator/task"
	"github.com/trimtab/trimtab/agent/signals"
	"github.com/trimtab/trimtab/analyzer/fingerprint"
	"github.com/trimtab/trimtab/collector/load"
	"github.com/trimtab/trimtab/planner/throttle"
	"github.com/trimtab/trimtab/speculation"
)

// loadWindow is the window over which the load of a host is averaged, in seconds.
const loadWindow = 30

// loadLevels has the loads of the last seconds and their levels (ROSE, algorithms 1 and 2).
type loadLevels struct {
	read   func() load.Reading
	before *load.Reading
	newest map[string]load.Load
	window map[string][]float64
	levels map[string]load.Load
}

// add measures the loads, at most once a second. A load that can no longer be measured becomes
// missing.
func (l *loadLevels) add(now time.Duration) {
	if l.before != nil && now-l.before.At < speculateEvery*9/10 && now >= l.before.At {
		return
	}
	r := l.read()
	if l.before == nil {
		l.before = &r
		return
	}
	l.newest = load.Between(*l.before, r)
	l.before = &r
	if l.window == nil {
		l.window = map[string][]float64{}
	}
	l.levels = map[string]load.Load{}
	maps.DeleteFunc(l.window, func(name string, _ []float64) bool { _, told := l.newest[name]; return !told })
	a := fingerprint.Default()
	for name, v := range l.newest {
		l.window[name] = append(l.window[name], v.Used)
		w := l.window[name]
		w = w[max(0, len(w)-loadWindow):]
		l.window[name] = w
		if level, err := a.Of(w); err == nil {
			l.levels[name] = load.Load{Used: level.Value, Capacity: v.Capacity}
		}
	}
}

// share returns a load as a fraction of the capacity.
func (l *loadLevels) share(name string) float64 {
	v, known := l.levels[name]
	return finite(v.Used/v.Capacity, known && v.Capacity > 0)
}

// capacity returns the capacity of a resource; NaN: not known.
func (l *loadLevels) capacity(name string) float64 {
	v, known := l.levels[name]
	return finite(v.Capacity, known)
}

// observe builds the policy's observation.
func (h *taskHost) observe(now time.Duration) throttle.Observation {
	o := throttle.Observation{Time: signals.Time(now), Mode: throttle.Mode(h.config.Mode), Revoke: h.revoke(),
		Capacity: []float64{h.account.idle(trimtab.CPU, h.loads.capacity("cpu")), h.account.idle(trimtab.Memory, h.loads.capacity("memory")), float64(h.config.Tasks - h.regular())}}
	if n := h.loads.capacity("cpu"); n > 0 {
		o.Cores = int(math.Floor(n))
	}
	for _, t := range h.config.Thresholds.List() {
		o.Metrics = append(o.Metrics, h.loads.share(t.Name))
	}
	if h.config.Mode != string(throttle.UP) {
		o.LRAs = h.signals.Observe(now, h.known.lately)
	}
	for _, a := range h.ledger.Attempts() {
		if a.State != placed.Running || a.Class == speculation.RegularTask {
			continue
		}
		class := h.known.classes[a.AttemptID]
		if class == "" {
			class = throttle.Second
		}
		t := throttle.Task{Activity: h.known.activity(now, a.AttemptID), ID: a.AttemptID.String(), Job: a.Job, Class: class, Holds: wantsOf(&a.Spec), Progress: math.NaN(), Expires: signals.Time(a.Until)}
		if p := progressOf(h.known.infos[a.AttemptID]); p != nil {
			t.Progress = *p
		}
		o.Tasks = append(o.Tasks, t)
	}
	return o
}

// activity returns the average number of cores that a task used since the last tick; NaN: unknown.
func (k *known) activity(now time.Duration, id task.ID) float64 {
	cpu := k.infos[id].CPU
	if cpu == nil {
		delete(k.used, id)
		return math.NaN()
	}
	was, known := k.used[id]
	k.used[id] = usage{now, *cpu}
	if !known || now <= was.at || *cpu < was.cpu { // the counter belongs to another group
		return math.NaN()
	}
	return (*cpu - was.cpu).Seconds() / (now - was.at).Seconds()
}
