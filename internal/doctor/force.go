package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/kinds"
	"github.com/trimtab/trimtab/agent/knobs"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/console/view"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// NotInForce returns the parts of a configuration that would have no effect on this host, as far as
// reading shows. It leaves out objects that do not exist here, since they may be on another host.
func NotInForce(ctx context.Context, cfg *config.Config) []Finding {
	v := newVisit(ctx, cfg, Location{})
	v.here = true
	v.fast()
	v.beside()
	return slices.DeleteFunc(v.found, func(f Finding) bool { return f.Level == FoundOK })
}

// fast checks whether the limit of the group above, for quotas that move between rounds, may be
// set.
func (v *visit) fast() {
	if !v.cfg.Fast.Acts() || v.cfg.Fast.Parent == "" {
		return
	}
	const subject = "fast.parent"
	parent, err := knobs.FastParent(v.cfg, kinds.On(kinds.RDT(v.cfg.Actuator.LockDir)))
	if err == nil && parent != nil {
		if err = parent.Probe(v.ctx); err == nil {
			err = parent.MayWrite(v.ctx)
		}
		_ = parent.Close() // nothing was written
	}
	switch {
	case v.here && errors.Is(err, os.ErrNotExist):
	case err != nil:
		v.add("knob", subject, FoundBad, fmt.Sprintf("no quota would move between rounds: the group above cannot be set: %v", err), actuator.ParentRemedy(err))
	default:
		v.add("knob", subject, FoundOK, "trimtab may set it", "")
	}
}

// shares says whether the workloads of the pool can share its CPU time by weight here.
func (v *visit) shares() {
	kinds := kinds.On(kinds.RDT(v.cfg.Actuator.LockDir))
	all, err := knobs.Of(kinds, v.cfg, v.place.Host)
	if err != nil {
		return // said of the knob
	}
	const subject = "knob.cpu.cap"
	at, no := knobs.Share(v.cfg, kinds, all, v.place.Host)
	switch {
	case at.Group != "":
		v.add("knob", subject, FoundOK, fmt.Sprintf("the group %s carries the limit of the pool, and its members share it by weight", at.Group), "")
	case no.Why != "":
		v.add("knob", subject, FoundNote, "each workload has a quota of its own, and loses what it leaves idle: "+no.Why, no.Do)
	}
}

// scheduler says whether a scheduler of sched_ext runs: which may leave quotas and weights
// alone, though they read back.
func (v *visit) scheduler(dir string) {
	state, err := os.ReadFile(filepath.Join(dir, "state"))
	if err != nil || strings.TrimSpace(string(state)) != "enabled" {
		return
	}
	name, _ := os.ReadFile(filepath.Join(dir, "root", "ops")) // on an error the name is unknown
	v.add("host", "scheduler", FoundNote, fmt.Sprintf("the scheduler %s of sched_ext runs: quotas and weights read back, and may do nothing", strings.TrimSpace(string(name))),
		"look whether nr_periods in cpu.stat of a group with a quota rises; if not, end that scheduler or use one that knows cpu.max and cpu.weight")
}

// moves checks whether a quota can move between rounds.
func (v *visit) moves(subject string, t actuator.Target) {
	q := t.Knob.Traits().Quick
	if q == nil || !v.cfg.Fast.Acts() || t.Resource != trimtab.CPU || t.Mode != trimtab.Act {
		return
	}
	if err := q.Ready(false); err != nil {
		v.add("knob", subject, FoundBad, fmt.Sprintf("its quota would not move between rounds: %v", err), actuator.MoveRemedy)
	}
}

// beside says how much of the pool's capacity best-effort jobs may take.
func (v *visit) beside() {
	if v.cfg.Beside.Jobs == nil || v.cfg.Pool.CPU == 0 || v.cfg.NATS.URL != "" {
		return
	}
	const subject = "beside.jobs.capacity"
	declared, known := v.cfg.Beside.Jobs.Capacity.ByResource()[trimtab.CPU]
	root, err := hostfs.CPURoot(v.cfg.Actuator.CgroupRoot)
	has := 0.0
	if err == nil {
		has, err = hostfs.CPUs(root)
	}
	has -= v.cfg.Actuator.Reserve.CPU
	switch {
	case !known:
		v.add("host", subject, FoundNote, fmt.Sprintf("best-effort jobs may take what services do not have set, also of the pool's %s", view.Sized(v.cfg.Pool.CPU, trimtab.CPU)),
			"capacity: {cpu: …} in beside.jobs bounds them; trimtab status says what they claim")
	case err == nil && v.cfg.Pool.CPU <= has && declared+v.cfg.Pool.CPU > has+1e-9:
		v.add("host", subject, FoundNote, fmt.Sprintf("best-effort jobs may take %s, the pool shares %s, and this host has %s: jobs may take what services do not have set",
			view.Sized(declared, trimtab.CPU), view.Sized(v.cfg.Pool.CPU, trimtab.CPU), view.Sized(has, trimtab.CPU)),
			"write less, where the pool is to have its whole; trimtab status says what they claim")
	}
}
