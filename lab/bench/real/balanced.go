package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/trimtab/trimtab/lab/bench/rig"
)

// instanceHeader is the header by which the load balancer names the instance that answered.
const instanceHeader = "X-Instance"

// balanced is nginx on two hosts, behind another nginx that balances the load.
type balanced struct {
	// front is the group of the load balancer, second that of the second instance.
	front, second *rig.Group

	instances [2]nginx
	balancer  *rig.Nginx
	// answered has which instance served a request, by when that was meant to be sent, until
	// somebody asks.
	answered sync.Map
}

func (b *balanced) start(ctx context.Context, in *rig.Group, dir string) (err error) {
	for i, group := range []*rig.Group{in, b.second} {
		own := filepath.Join(dir, fmt.Sprint("instance-", i+1))
		if err := os.MkdirAll(own, 0o755); err != nil {
			return fmt.Errorf("start nginx: %w", err)
		}
		if err := b.instances[i].start(ctx, group, own); err != nil {
			return err
		}
	}
	// Each request goes to the instance with the fewest open ones, and the answer says which that was.
	b.balancer, err = rig.StartNginx(ctx, b.front, dir, rig.Site{
		HTTP:   fmt.Sprintf("upstream instances { least_conn; server %s max_fails=0; server %s max_fails=0; keepalive 512; }", b.instances[0].Address, b.instances[1].Address),
		Server: "location / { " + rig.Pass("instances") + " add_header " + instanceHeader + " $upstream_addr always; }",
		Ready:  "/1", Most: inFlight,
	})
	return err
}

func (b *balanced) do(ctx context.Context, work int) error {
	if err := errors.Join(b.instances[0].prepare(work), b.instances[1].prepare(work)); err != nil {
		return err
	}
	header, err := b.balancer.Ask(ctx, "/"+strconv.Itoa(work))
	if deadline, ok := ctx.Deadline(); ok && header.Get(instanceHeader) == b.instances[1].Address {
		b.answered.Store(deadline.Add(-patience).UnixNano(), 1)
	}
	return err
}

// instance returns which instance served the request that was meant to be sent at from: 0 or 1.
func (b *balanced) instance(from time.Time) int {
	if _, second := b.answered.LoadAndDelete(from.UnixNano()); second {
		return 1
	}
	return 0
}

func (b *balanced) close() {
	b.balancer.Close()
	for i := range b.instances {
		b.instances[i].close()
	}
}

// amountsOfTwo reads what each service has on two hosts: the sums of its quotas, or of its parts
// by weight of what a host has.
func (h *host) amountsOfTwo(ctx context.Context) (cores [3]float64, err error) {
	for k, host := range h.hosts() {
		capacity, err := host.Cores(ctx)
		if err != nil {
			return cores, err
		}
		var on [3]*rig.Group
		sum := 0.0
		for i, s := range h.services {
			if on[i] = s.on(k, i); on[i] == nil {
				continue
			}
			w, err := on[i].Weight()
			if err != nil {
				return cores, err
			}
			sum += w
		}
		for i, g := range on {
			if g == nil {
				continue
			}
			w, err := g.Weight()
			if err != nil {
				return cores, err
			}
			quota, err := g.Cores(ctx)
			if err != nil {
				return cores, err
			}
			cores[i] += min(quota, capacity*w/sum)
		}
	}
	return cores, nil
}

// on returns the group of service i on one of two hosts; nil: it is not there.
func (s *service) on(host, i int) *rig.Group {
	switch {
	case i == 0 && host == 1:
		return s.also
	case i == 0, i == 1 && host == 0, i == 2 && host == 1:
		return s.group
	}
	return nil
}
