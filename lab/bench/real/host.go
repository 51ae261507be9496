package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/trimtab/trimtab/lab/bench/rig"
	"github.com/trimtab/trimtab/lab/services/shape"
)

// software is a real service under test.
type software interface {
	// start runs it in a group, with its files in dir, and returns when it
	// answers.
	start(ctx context.Context, in *rig.Group, dir string) error
	// do sends one request that asks for so much work, and waits for its
	// answer.
	do(ctx context.Context, work int) error
	// close ends it. It may be called however far start came.
	close()
}

// slo asks that Fraction of the requests are answered within Latency.
type slo struct {
	Latency  time.Duration `json:"latency"`
	Fraction float64       `json:"fraction"`
}

// service is software with a group, a calibrated request and an SLO.
type service struct {
	Name string
	SLO  slo
	// Cost is the CPU time that a request of size 1 takes, of the work that price
	// tells.
	Cost time.Duration

	software software
	group    *rig.Group
	// also has its second instance, on the second host; nil: there is none.
	also  *rig.Group
	price price
}

// groups are those of its instances.
func (s *service) groups() []*rig.Group {
	if s.also == nil {
		return []*rig.Group{s.group}
	}
	return []*rig.Group{s.group, s.also}
}

// used returns the CPU time that its instances have used so far.
func (s *service) used() (time.Duration, error) { return rig.Used(s.groups()...) }

// free takes the quotas of its instances away.
func (s *service) free(ctx context.Context) error {
	for _, g := range s.groups() {
		if err := g.Free(ctx); err != nil {
			return err
		}
	}
	return nil
}

// do sends a request of a size relative to the calibrated one.
func (s *service) do(ctx context.Context, size float64) error { return s.ask(ctx, size, 1) }

// ask sends a request of a size and a class.
func (s *service) ask(ctx context.Context, size float64, class int) (err error) {
	work := int(math.Round(size * float64(s.price.now())))
	if m, ok := s.software.(*managed); ok {
		err = m.ask(ctx, work, class)
	} else {
		err = s.software.do(ctx, work)
	}
	if !errors.Is(err, errShed) { // what failed late has cost as much
		s.price.did(work)
	}
	return err
}

// groupPrefix begins the names of the groups; weight is that of those at the top, ten times
// the kernel's default: what else runs on the machine disturbs less.
const (
	groupPrefix = "trimtab-real-"
	weight      = 1000
	usualWeight = 100
)

// host is everything that runs for the benchmark: services in their groups, beside
// the group of the benchmark and that of trimtab, Prometheus and Alertmanager.
type host struct {
	*rig.Host
	Pool     float64
	services [3]*service
	// above is the group above those of the services, which has the pool as its quota. Where
	// two groups play hosts it is the first, beside the second, and each has half of the pool;
	// nil: there is one.
	above  *rig.Group
	beside *rig.Group
	// common are the groups of the pool on two hosts.
	common []*rig.Group
	dir    string
}

// openHost starts the services of a scenario, without quotas, below a group for all of them, or
// below two that play hosts: then nginx is on both, behind a load balancer, redis on the first and
// PostgreSQL on the second. After an error everything is as before.
func openHost(ctx context.Context, dir string, pool float64, of shape.Scenario) (h *host, err error) {
	h = &host{Pool: pool, dir: dir}
	if h.Host, err = rig.OpenHost(groupPrefix, weight); err != nil {
		return nil, err
	}
	defer func(opened *host) {
		if err != nil {
			err = errors.Join(err, opened.close())
		}
	}(h)
	if h.above, err = h.Group("pool", weight); err != nil {
		return nil, err
	}
	names, soft := team(of)
	var below [3]string
	for i := range below {
		below[i] = filepath.Join(h.Root, h.above.Name)
	}
	if of.Two {
		if h.beside, err = h.Group("pool-2", weight); err != nil {
			return nil, err
		}
		if err = h.share(&below); err != nil {
			return nil, err
		}
		web := &balanced{front: h.Own}
		soft[0] = web
		if web.second, err = rig.NewGroup(below[2], groupPrefix, names[0], usualWeight); err != nil {
			return nil, err
		}
		h.services[0] = &service{also: web.second}
	}
	limits := [3]time.Duration{200 * time.Millisecond, 250 * time.Millisecond, 300 * time.Millisecond}
	for i, name := range names {
		s := &service{Name: name, SLO: slo{limits[i], 0.95}}
		if h.services[i] != nil {
			s.also = h.services[i].also
		}
		if s.group, err = rig.NewGroup(below[i], groupPrefix, name, usualWeight); err != nil {
			return nil, err
		}
		s.software = soft[i]
		h.services[i] = s
		own := filepath.Join(dir, name)
		if err = os.MkdirAll(own, 0o755); err != nil {
			return nil, fmt.Errorf("make directory of %s: %w", name, err)
		}
		if err = s.software.start(ctx, s.group, own); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// share makes the group of the pool on each of two hosts, and names that of each service.
func (h *host) share(below *[3]string) error {
	for _, host := range h.hosts() {
		g, err := rig.NewGroup(filepath.Join(h.Root, host.Name), groupPrefix, "shop", usualWeight)
		if err != nil {
			return err
		}
		h.common = append(h.common, g)
	}
	for i, at := range []int{0, 0, 1} {
		below[i] = h.common[at].Dir()
	}
	return nil
}

// close ends the services and removes the groups. This process goes back to
// where it was.
func (h *host) close() error {
	var failed []error
	for _, s := range h.services {
		if s == nil {
			continue
		}
		if s.group != nil {
			// A quota would make even the end slow.
			_ = s.free(context.Background())
		}
		if s.software != nil {
			s.software.close()
		}
		for _, g := range s.groups() {
			if g != nil {
				failed = append(failed, g.Close())
			}
		}
	}
	for _, g := range append(h.common, h.above, h.beside) {
		if g != nil {
			failed = append(failed, g.Close())
		}
	}
	return errors.Join(append(failed, h.Host.Close())...)
}

// names are those of the services.
func (h *host) names() (out [3]string) {
	for i, s := range h.services {
		out[i] = s.Name
	}
	return out
}

// path is where a service's group is, below the root, or, where there are two hosts, below that
// of its host.
func (h *host) path(s *service) string {
	if h.beside != nil {
		return h.common[0].Name + "/" + s.group.Name
	}
	return h.above.Name + "/" + s.group.Name
}

// kernel leaves the sharing of the pool to the kernel: one quota above, no other, equal weights.
func (h *host) kernel(ctx context.Context) error {
	err := h.weigh([3]float64{1, 1, 1})
	for _, g := range h.hosts() {
		err = errors.Join(err, g.Set(ctx, h.Pool/float64(len(h.hosts()))))
	}
	for _, s := range h.services {
		err = errors.Join(err, s.free(ctx))
	}
	return err
}

// hosts are the groups that carry the pool.
func (h *host) hosts() []*rig.Group {
	if h.beside == nil {
		return []*rig.Group{h.above}
	}
	return []*rig.Group{h.above, h.beside}
}

// set sets all shares of the pool: falls before rises, so that the sum never
// goes over the pool.
func (h *host) set(ctx context.Context, shares [3]float64) error {
	var now, next [3]float64
	for i, s := range h.services {
		v, err := s.group.Cores(ctx)
		if err != nil {
			return err
		}
		// Whole microseconds of a period, rounded down: rounding may not add up
		// to more than the pool.
		now[i], next[i] = v, math.Floor(shares[i]*h.Pool*1e5+1e-6)/1e5
	}
	for _, rises := range []bool{false, true} {
		for i, s := range h.services {
			if now[i] == next[i] || (next[i] > now[i]) != rises {
				continue
			}
			if err := s.group.Set(ctx, next[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// quotas reads all quotas as of one moment: until two readings agree, since a
// rise that is read after the fall that paid for it was missed would add up to
// a sum that never was. steady is false when they did not stand still.
func (h *host) quotas(ctx context.Context) (cores [3]float64, steady bool, err error) {
	var last [3]float64
	for try := range 6 {
		if cores, err = h.amounts(ctx); err != nil {
			return last, false, err
		}
		if try > 0 && cores == last {
			return cores, true, nil
		}
		last = cores
	}
	return cores, false, nil
}

// amounts reads what each service has: its quota, and, where one has none, no more than its
// part by weight of the pool.
func (h *host) amounts(ctx context.Context) (cores [3]float64, err error) {
	if h.beside != nil {
		return h.amountsOfTwo(ctx)
	}
	var weights [3]float64
	shared, sum := false, 0.0
	for i, s := range h.services {
		if cores[i], err = s.group.Cores(ctx); err != nil {
			return cores, err
		}
		if weights[i], err = s.group.Weight(); err != nil {
			return cores, err
		}
		sum += weights[i]
		shared = shared || cores[i] >= float64(runtime.NumCPU())
	}
	pool, err := h.above.Cores(ctx)
	for i := range cores {
		if shared {
			cores[i] = min(cores[i], pool*weights[i]/sum)
		}
	}
	return cores, err
}

// usage returns the CPU time that the services have used.
func (h *host) usage() (out [3]time.Duration, err error) {
	for i, s := range h.services {
		if out[i], err = s.used(); err != nil {
			return out, err
		}
	}
	return out, nil
}

// total returns the CPU time of all groups of the benchmark.
func (h *host) total() (time.Duration, error) {
	groups := []*rig.Group{h.Own, h.Control}
	for _, s := range h.services {
		groups = append(groups, s.groups()...)
	}
	return rig.Used(groups...)
}

// drain lets the services finish what they still have: without quotas, until
// they are idle, at most 30 s.
func (h *host) drain(ctx context.Context) error {
	for _, g := range h.hosts() {
		if err := g.Free(ctx); err != nil {
			return err
		}
	}
	for _, s := range h.services {
		if err := s.free(ctx); err != nil {
			return err
		}
	}
	before, err := h.usage()
	if err != nil {
		return err
	}
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for range 60 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("drain the services: %w", ctx.Err())
		}
		now, err := h.usage()
		if err != nil {
			return err
		}
		idle := true
		for i := range now {
			idle = idle && now[i]-before[i] < 20*time.Millisecond
		}
		if idle {
			return nil
		}
		before = now
	}
	return fmt.Errorf("drain the services: still busy after 30 s: %w", rig.ErrAnswer)
}
