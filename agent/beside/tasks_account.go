package beside

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/arbiter"
	"github.com/trimtab/trimtab/actuator/kinds"
	"github.com/trimtab/trimtab/actuator/placed"
	"github.com/trimtab/trimtab/actuator/task"
	"github.com/trimtab/trimtab/agent/knobs"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/speculation"
)

// taskAccount claims the capacity of the host that tasks get, so that other processes of the host do not
// give out the same capacity: a regular task has its cores and memory for itself, a speculative task
// uses those that others leave idle.
type taskAccount struct {
	arbiter *arbiter.Arbiter
	logger  *slog.Logger
	// measure returns the capacity that all pools of the host share, and roots has the control group
	// of which it is, both by resource.
	measure func() (map[string]float64, error)
	roots   map[string]string
	// ratio is the share of the host that all pools together may promise to speculative tasks, by
	// resource.
	ratio map[string]float64

	// capacity was measured last. problem says why no claim can be made; "": claims can be made.
	capacity map[string]float64
	problem  string
	// settled is when the claims were published last.
	settled time.Duration
}

// openAccount returns the account of the tasks of a pool, which run in a control group.
func openAccount(cfg *config.Config, c task.Config, group string, logger *slog.Logger) *taskAccount {
	boot, _ := hostfs.BootID() // the runner has read it already
	who := arbiter.Claimant{Journal: c.Dir, Pool: cfg.Pool.Name, PID: os.Getpid(), Boot: boot, Group: group}
	all, known := []knobs.Declared{{Kind: "cgroup", At: actuator.Location{Root: c.Root}, Like: []actuator.Target{
		{KnobID: trimtab.KnobID{Resource: trimtab.CPU}}, {KnobID: trimtab.KnobID{Resource: trimtab.Memory}}}}}, kinds.All()
	return &taskAccount{arbiter: arbiter.New(filepath.Join(knobs.LockDir(cfg), "claims"), who, logger), logger: logger,
		measure: knobs.Measure(known, cfg, all), roots: knobs.Roots(known, all), settled: -time.Hour,
		ratio: map[string]float64{trimtab.CPU: cfg.Beside.Tasks.Ratio.CPU, trimtab.Memory: cfg.Beside.Tasks.Ratio.Memory}}
}

// claims returns the sum of the claims of all tasks that run or have a grant, and of the tasks more, by
// resource.
func (h *taskHost) claims(more ...speculation.Placement) map[string]arbiter.Claim {
	all := map[string]arbiter.Claim{}
	if h.account == nil {
		return all
	}
	counted := map[task.ID]bool{}
	count := func(id task.ID, class speculation.TaskClass, cores, memory float64) {
		for resource, v := range map[string]float64{trimtab.CPU: cores, trimtab.Memory: memory} {
			c := h.account.claimOf(all, resource)
			if class == speculation.RegularTask {
				c.Now, c.May = c.Now+v, c.May+v
			} else {
				c.Idle += v
			}
			all[resource] = c
		}
		counted[id] = true
	}
	for _, p := range more {
		count(p.AttemptID, p.Class, p.Spec.Cores, p.Spec.Memory)
	}
	for _, a := range h.ledger.Attempts() {
		if !counted[a.AttemptID] && (a.State == placed.Running || slices.Contains(h.granted, a.AttemptID)) {
			count(a.AttemptID, a.Class, a.Spec.Cores, a.Spec.Memory)
		}
	}
	for id, i := range h.known.infos { // tasks of an earlier run of the agent that cannot be killed
		if !counted[id] && i.State != task.Ended {
			count(id, speculation.TaskClass(i.Class), i.Resources.Cores.Value, i.Resources.Memory.Value)
		}
	}
	return all
}

// claimOf returns the claim on a resource; if there is none, one of 0 with root and capacity.
func (a *taskAccount) claimOf(all map[string]arbiter.Claim, resource string) arbiter.Claim {
	c, ok := all[resource]
	if ok {
		return c
	}
	c.Root = a.roots[resource]
	if v, ok := a.capacity[resource]; ok {
		c.Capacity = &v
	}
	return c
}

// publish writes the claims once a second, and reads those of others.
func (a *taskAccount) publish(ctx context.Context, now time.Duration, claims func(...speculation.Placement) map[string]arbiter.Claim) {
	if a == nil || now-a.settled < speculateEvery*9/10 && now >= a.settled {
		return
	}
	a.settled = now
	capacity, err := a.measure()
	if err == nil {
		a.capacity = capacity
		if err = a.arbiter.Settle(ctx, claims()); errors.Is(err, trimtab.ErrRefused) {
			return // another process reads the claims now
		}
	}
	problem := ""
	if err != nil {
		problem = err.Error()
	}
	if problem != "" && a.problem == "" {
		a.logger.Warn("no speculative task starts: the claims on this host cannot be read or written", "problem", problem)
	}
	a.problem = problem
}

// idle returns the capacity of a resource of which this pool may promise speculative tasks the share
// ratio: the given capacity of the host, less what other pools have promised. NaN: not known.
func (a *taskAccount) idle(resource string, capacity float64) float64 {
	switch {
	case a == nil:
		return capacity
	case a.problem != "":
		return math.NaN()
	}
	ratio := a.ratio[resource]
	return max(0, min(capacity, a.arbiter.IdleRoom(resource, a.claimOf(nil, resource), ratio*capacity)/ratio))
}

// claim claims cores and memory for a task before the task gets them. It returns why the claim is
// refused; "": it is granted, until a publish whose claims do not include the task.
func (h *taskHost) claim(ctx context.Context, p speculation.Placement, class speculation.TaskClass) (why string) {
	if h.account == nil {
		return ""
	}
	p.Class = class
	claims, want := h.claims(), h.claims(p)
	for _, resource := range []string{trimtab.CPU, trimtab.Memory} {
		var granted, wanted float64
		var err error
		if class == speculation.RegularTask {
			wanted = want[resource].Now
			granted, err = h.account.arbiter.Ask(ctx, claims, resource, wanted)
		} else {
			wanted = want[resource].Idle
			granted, err = h.account.arbiter.AskIdle(ctx, claims, resource, wanted, h.account.ratio[resource]*h.account.capacity[resource])
		}
		switch {
		case err != nil:
			return "what other pools of this host have cannot be told: " + err.Error()
		case granted < wanted*(1-1e-9):
			return fmt.Sprintf("other pools of this host claim the rest of its %s: %.4g of %.4g are left", resource, granted, wanted)
		}
		claims[resource] = want[resource]
	}
	return ""
}

// close ends the claims. If tasks are left, the claims stay until the last task has ended.
func (a *taskAccount) close(left bool) error {
	if a == nil {
		return nil
	}
	return a.arbiter.Close(!left)
}
