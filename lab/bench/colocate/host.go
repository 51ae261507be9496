package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/trimtab/trimtab/lab/bench/rig"
)

// heavy is the weight of the generator's group and of the controller's: neither may
// wait because of what is measured.
const heavy = 10 * normal

// host is everything that runs for the bench.
type host struct {
	root, dir string
	shop      *shop
	jobs      []*job
	// own has the load generator and the gateway, control trimtab.
	own, control *rig.Group
	// before are the groups that this process was in.
	before []string
}

// openHost starts the service, and makes the groups of the jobs. After an error
// everything is as before.
func openHost(ctx context.Context, dir string, weight int) (h *host, err error) {
	root, err := rig.FindRoot()
	if err != nil {
		return nil, fmt.Errorf("find a cgroup to make groups in (root, or a delegated subtree, is needed): %w", err)
	}
	rig.Sweep(root, groupPrefix)
	h = &host{root: root, dir: dir, shop: &shop{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.close())
		}
	}()
	if h.own, err = rig.NewGroup(root, groupPrefix, "own", heavy); err != nil {
		return nil, err
	}
	if h.before, err = rig.Memberships(); err != nil {
		return nil, err
	}
	if err = h.own.AddProcess(os.Getpid()); err != nil {
		return nil, err
	}
	if h.control, err = rig.NewGroup(root, groupPrefix, "control", heavy); err != nil {
		return nil, err
	}
	own := filepath.Join(dir, "shop")
	if err = os.Mkdir(own, 0o755); err != nil {
		return nil, fmt.Errorf("make directory of the service: %w", err)
	}
	if err = h.shop.start(ctx, root, own); err != nil {
		return nil, err
	}
	for _, s := range specs() {
		j, err := newJob(root, dir, s, weight)
		if j != nil {
			h.jobs = append(h.jobs, j)
		}
		if err != nil {
			return nil, err
		}
	}
	return h, nil
}

// close ends everything and removes the groups. This process goes back to where it
// was.
func (h *host) close() error {
	var failed []error
	for _, j := range h.jobs {
		failed = append(failed, j.close())
	}
	failed = append(failed, h.shop.close())
	if h.control != nil {
		failed = append(failed, h.control.Close())
	}
	if h.own != nil {
		failed = append(failed, rig.Enter(h.before), h.own.Close())
	}
	return errors.Join(failed...)
}

// total returns the CPU time of all groups of the bench.
func (h *host) total() (time.Duration, error) {
	groups := []*rig.Group{h.own, h.control, h.shop.front, h.shop.back}
	for _, j := range h.jobs {
		groups = append(groups, j.group)
	}
	sum := time.Duration(0)
	for _, g := range groups {
		v, err := g.Used()
		if err != nil {
			return 0, err
		}
		sum += v
	}
	return sum, nil
}

// begin starts all jobs.
func (h *host) begin(frozen bool) error {
	for _, j := range h.jobs {
		if err := j.start(frozen); err != nil {
			return err
		}
	}
	return nil
}

// halt ends all jobs.
func (h *host) halt(ctx context.Context) error {
	var failed []error
	for _, j := range h.jobs {
		failed = append(failed, j.halt(ctx))
	}
	return errors.Join(failed...)
}

// work returns what each job has done.
func (h *host) work() ([]float64, error) {
	out := make([]float64, len(h.jobs))
	for i, j := range h.jobs {
		var err error
		if out[i], err = j.work(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// wait waits for d or until ctx ends.
func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
