package supervise

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/trimtab/trimtab/console/view"
	"github.com/trimtab/trimtab/internal/metric"
)

// Readiness has the reasons why parts are not ready, and exports them as a metric.
type Readiness struct {
	Metrics *metric.Set
	Logger  *slog.Logger

	mu    sync.Mutex
	why   map[string]string    // of every part, "" when it is ready
	since map[string]time.Time // when that changed
	notes map[string]string    // what a part that is ready lacks
	// changed is called when a part became ready or stopped being ready; it may be nil.
	changed func()
}

// Note sets what a part lacks although it is ready.
func (r *Readiness) Note(name, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.notes == nil {
		r.notes = map[string]string{}
	}
	r.notes[name] = text
}

// Set sets a part's reason for not being ready; "" means ready.
func (r *Readiness) Set(name, why string) {
	if tell := r.take(name, why); tell != nil {
		tell()
	}
}

// OnChange sets a function to call when a part became ready or is no longer.
func (r *Readiness) OnChange(changed func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changed = changed
}

// take stores the reason, and returns a function to call, or nil.
func (r *Readiness) take(name, why string) func() {
	r.mu.Lock()
	defer r.mu.Unlock()
	old, known := r.why[name]
	if known && old == why {
		return nil
	}
	if r.why == nil {
		r.why, r.since = map[string]string{}, map[string]time.Time{}
	}
	// A changed reason of a part that is not ready is not logged by default: reasons with an
	// error in them may change at every attempt.
	level := slog.LevelDebug
	if !known || (old == "") != (why == "") {
		r.since[name] = time.Now()
		level = slog.LevelInfo
	}
	if old == "starting" {
		level = slog.LevelInfo
	}
	r.why[name] = why
	ready := 0.0
	if why == "" {
		ready = 1
	}
	r.Metrics.Gauge("trimtab_stage_ready", name).Set(ready)
	r.Logger.Log(context.Background(), level, "readiness", "part", name, "ready", why == "", "reason", why)
	return r.changed
}

// Forget drops a part that was stopped.
func (r *Readiness) Forget(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.why, name)
	delete(r.since, name)
	delete(r.notes, name)
	r.Metrics.Forget("trimtab_stage_ready", name)
}

// NotReady returns the reasons of the parts that are not ready.
func (r *Readiness) NotReady() map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := maps.Clone(r.why)
	maps.DeleteFunc(out, func(_, why string) bool { return why == "" })
	return out
}

// Stages returns all parts in order of name, with the time since which they are ready or not.
func (r *Readiness) Stages() []view.StageState {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := []view.StageState{}
	for _, name := range slices.Sorted(maps.Keys(r.why)) {
		out = append(out, view.StageState{Name: name, Ready: r.why[name] == "", Reason: r.why[name], Since: r.since[name], Missing: r.notes[name]})
	}
	return out
}
