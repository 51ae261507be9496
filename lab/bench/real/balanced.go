package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/trimtab/trimtab/lab/bench/rig"
)

// balancerConf makes nginx send each request to the instance with the fewest open ones, and say
// which that was.
const balancerConf = `daemon off;
worker_processes 1;
user %[3]s;
pid %[1]s/nginx.pid;
error_log stderr warn;
events { worker_connections 8192; }
http {
  access_log off;
  keepalive_requests 1000000;
  client_body_temp_path %[1]s/body;
  proxy_temp_path %[1]s/proxy;
  fastcgi_temp_path %[1]s/fastcgi;
  uwsgi_temp_path %[1]s/uwsgi;
  scgi_temp_path %[1]s/scgi;
  upstream instances { least_conn; server %[4]s max_fails=0; server %[5]s max_fails=0; keepalive 512; }
  server {
    listen %[2]s backlog=4096;
    location / {
      proxy_pass http://instances;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      add_header %[6]s $upstream_addr always;
    }
  }
}
`

// instanceHeader is the header by which the load balancer names the instance that answered.
const instanceHeader = "X-Instance"

// balanced is nginx on two hosts, behind another nginx that balances the load.
type balanced struct {
	// front is the group of the load balancer, second that of the second instance.
	front, second *rig.Group

	instances [2]nginx
	address   string
	balancer  *rig.Process
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
	if b.address, err = rig.FreeAddress(); err != nil {
		return err
	}
	user, err := rig.CurrentUser()
	if err != nil {
		return fmt.Errorf("start load balancer: %w", err)
	}
	binary, err := rig.Lookup("nginx", "nginx-light")
	if err != nil {
		return err
	}
	conf, log := filepath.Join(dir, "nginx.conf"), filepath.Join(dir, "nginx.log")
	text := fmt.Appendf(nil, balancerConf, dir, b.address, user, b.instances[0].address, b.instances[1].address, instanceHeader)
	if err := os.WriteFile(conf, text, 0o600); err != nil {
		return fmt.Errorf("start load balancer: %w", err)
	}
	b.balancer, err = rig.Start(rig.Program{Args: []string{binary, "-e", log, "-p", dir, "-c", conf}, Dir: dir, Log: log, Stop: syscall.SIGTERM}, b.front)
	if err != nil {
		return err
	}
	return b.balancer.Await(ctx, func(ctx context.Context) error { return b.do(ctx, 1) })
}

func (b *balanced) do(ctx context.Context, work int) error {
	if err := errors.Join(b.instances[0].prepare(work), b.instances[1].prepare(work)); err != nil {
		return err
	}
	at, err := b.instances[0].ask(ctx, b.address, work)
	if deadline, ok := ctx.Deadline(); ok && at == b.instances[1].address {
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
	if b.balancer != nil {
		b.balancer.Close()
	}
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
