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
	*rig.Host
	dir  string
	shop *shop
	jobs []*job
	// weight is that of a job's group, over the kernel's default.
	weight float64
}

// openHost starts the service, and makes the groups of the jobs. After an error
// everything is as before.
func openHost(ctx context.Context, dir string, weight int) (h *host, err error) {
	h = &host{dir: dir, shop: &shop{}, weight: float64(weight) / normal}
	if h.Host, err = rig.OpenHost(groupPrefix, heavy); err != nil {
		return nil, err
	}
	defer func(opened *host) {
		if err != nil {
			err = errors.Join(err, opened.close())
		}
	}(h)
	own := filepath.Join(dir, "shop")
	if err = os.Mkdir(own, 0o755); err != nil {
		return nil, fmt.Errorf("make directory of the service: %w", err)
	}
	if err = h.shop.start(ctx, h.Host, own); err != nil {
		return nil, err
	}
	for _, s := range specs() {
		j, err := newJob(h.Host, dir, s, weight)
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
	return errors.Join(append(failed, h.shop.close(), h.Host.Close())...)
}

// others returns the CPU time of all groups of the bench but those of the jobs.
func (h *host) others() (time.Duration, error) {
	return rig.Used(h.Own, h.Control, h.shop.front, h.shop.back)
}

// total returns the CPU time of all groups of the bench.
func (h *host) total() (time.Duration, error) {
	sum, err := h.others()
	for _, j := range h.jobs {
		v, failed := j.group.Used()
		sum, err = sum+v, errors.Join(err, failed)
	}
	return sum, err
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

// idle sets whether the jobs' groups run only while nobody else wants a CPU.
func (h *host) idle(on bool) error {
	for _, j := range h.jobs {
		if err := j.group.Idle(on, h.weight); err != nil {
			return err
		}
	}
	return nil
}

// halt ends all jobs, and gives their groups their weight back.
func (h *host) halt(ctx context.Context) error {
	failed := []error{h.idle(false)}
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
