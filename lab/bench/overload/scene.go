package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/trimtab/trimtab/lab/bench/rig"
)

// Weights of groups: at the top ten times the kernel's default, so that what else runs on the
// machine disturbs less.
const (
	groupPrefix = "trimtab-overload-"
	weight      = 1000
	usualWeight = 100
)

// scene is a service in its group, beside a neighbour below the same pool.
type scene struct {
	*rig.Host
	pool, group, neighbour, proxies *rig.Group
	service                         service
	address                         string
	cores                           float64
	dir                             string
	// path asks for a request of the calibrated cost, small for the least one.
	path, small string
}

// openScene starts a service without a quota. After an error everything is as before.
func openScene(ctx context.Context, dir, name string, cores float64) (s *scene, err error) {
	s = &scene{cores: cores, dir: filepath.Join(dir, name), service: newService(name)}
	if err = os.MkdirAll(s.dir, 0o755); err != nil {
		return nil, fmt.Errorf("make directory of %s: %w", name, err)
	}
	if s.Host, err = rig.OpenHost(groupPrefix, weight); err != nil {
		return nil, err
	}
	defer func(opened *scene) {
		if err != nil {
			err = errors.Join(err, opened.close())
		}
	}(s)
	if s.pool, err = s.Group("pool", weight); err != nil {
		return nil, err
	}
	if s.proxies, err = s.Group("proxy", weight); err != nil {
		return nil, err
	}
	if s.group, err = rig.NewGroup(s.pool.Dir(), groupPrefix, name, usualWeight); err != nil {
		return nil, err
	}
	if s.neighbour, err = rig.NewGroup(s.pool.Dir(), groupPrefix, "neighbour", usualWeight); err != nil {
		return nil, err
	}
	if s.address, err = s.service.start(ctx, s.group, s.dir); err != nil {
		return nil, err
	}
	s.small, err = s.service.path(1)
	return s, err
}

func (s *scene) close() error {
	var failed []error
	if s.group != nil {
		_ = s.group.Free(context.Background()) // a quota would make even the end slow
	}
	s.service.close()
	for _, g := range []*rig.Group{s.group, s.neighbour, s.pool, s.proxies} {
		if g != nil {
			failed = append(failed, g.Close())
		}
	}
	return errors.Join(append(failed, s.Host.Close())...)
}

// used returns the CPU time of all groups of the bench.
func (s *scene) used() (time.Duration, error) {
	return rig.Used(s.Own, s.Control, s.group, s.neighbour, s.proxies)
}

// bound gives the service its CPU as a row has it, and returns what takes it away again.
func (s *scene) bound(ctx context.Context, row string) (func() error, error) {
	if row != rowWeights {
		return func() error { return s.group.Free(ctx) }, s.group.Set(ctx, s.cores)
	}
	if err := s.pool.Set(ctx, 2*s.cores); err != nil {
		return nil, err
	}
	args, err := childArgs(childSpin)
	if err != nil {
		return nil, err
	}
	p, err := rig.Start(rig.Program{Args: args, Dir: s.dir, Log: filepath.Join(s.dir, "spin.log"), Stop: syscall.SIGKILL}, s.neighbour)
	if err != nil {
		return nil, err
	}
	return func() error {
		p.Close()
		return s.pool.Free(ctx)
	}, nil
}

// busy begins to measure what the service uses in the step of a course, and returns what tells it
// at the end of the run, over its cores; nil: it could not be read.
func (s *scene) busy(c course) func() *float64 {
	var used [2]time.Duration
	var failed [2]error
	var reads sync.WaitGroup
	for k, at := range []time.Duration{c.Before, c.end()} {
		reads.Go(func() {
			<-time.After(at)
			used[k], failed[k] = s.group.Used()
		})
	}
	return func() *float64 {
		reads.Wait()
		if errors.Join(failed[:]...) != nil {
			return nil
		}
		v := (used[1] - used[0]).Seconds() / c.Step.Seconds() / s.cores
		return &v
	}
}

// calibrate finds the work that costs about so much CPU time, and returns what it costs.
func (s *scene) calibrate(ctx context.Context, target time.Duration) (cost time.Duration, err error) {
	const rounds = 7
	// The first guesses are far off, and the first requests dear.
	work := 8
	for pass := range 4 {
		if s.path, err = s.service.path(work); err != nil {
			return 0, err
		}
		var all []time.Duration
		for range rounds {
			cost, err := s.batch(ctx)
			if err != nil {
				return 0, err
			}
			all = append(all, cost)
		}
		slices.Sort(all)
		cost = all[rounds/2]
		if pass < 3 {
			// What a request costs is in proportion to its work.
			work = max(1, int(math.Round(float64(work)*float64(target)/float64(cost))))
		}
	}
	return cost, nil
}

// batchSize requests, one after the other, tell what one costs now: other machines on the same
// hardware change it.
const batchSize = 10

// batch returns the mean CPU time of a request. There must be no quota.
func (s *scene) batch(ctx context.Context) (time.Duration, error) {
	before, err := s.group.Used()
	if err != nil {
		return 0, err
	}
	for range batchSize {
		if _, err := ask(ctx, "http://"+s.address+s.path); err != nil {
			return 0, err
		}
	}
	after, err := s.group.Used()
	return max(after-before, time.Microsecond) / batchSize, err
}

// ask sends one request, and returns how long it took.
func ask(ctx context.Context, url string) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, fmt.Errorf("ask %s: %w", url, err)
	}
	req.Header.Set("Accept-Encoding", "gzip")
	from := time.Now()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, fmt.Errorf("ask %s: %w", url, err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return 0, fmt.Errorf("ask %s: %w", url, err)
	}
	if resp.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("ask %s: %s: %w", url, resp.Status, rig.ErrAnswer)
	}
	return time.Since(from), nil
}

// probes is how many small requests are sent each way to see what a proxy adds.
const probes = 150

// added returns what a proxy adds to the median of a small request, in ms: requests go each way
// in turn, one at a time.
func (s *scene) added(ctx context.Context, f *front) (float64, error) {
	var direct, through []float64
	for range probes {
		for _, way := range []struct {
			address string
			into    *[]float64
		}{{s.address, &direct}, {f.address, &through}} {
			took, err := ask(ctx, "http://"+way.address+s.small)
			if err != nil {
				return 0, err
			}
			*way.into = append(*way.into, took.Seconds()*1000)
		}
	}
	return median(through) - median(direct), nil
}

// drain lets the service finish what it still has: without a quota, until it is idle, for at
// most 30 s.
func (s *scene) drain(ctx context.Context) error {
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	before, err := s.group.Used()
	if err != nil {
		return err
	}
	for range 120 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("drain the service: %w", ctx.Err())
		}
		now, err := s.group.Used()
		if err != nil {
			return err
		}
		if now-before < 10*time.Millisecond {
			return nil
		}
		before = now
	}
	return fmt.Errorf("drain the service: still busy after 30 s: %w", rig.ErrAnswer)
}
