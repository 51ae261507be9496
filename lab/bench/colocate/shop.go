package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"time"

	"github.com/trimtab/trimtab/lab/bench/rig"
)

// groupPrefix begins the names of the bench's cgroups.
const groupPrefix = "trimtab-colocate-"

// normal is the weight that the kernel gives a group; the generator's and the
// controller's groups have ten times that, so that they do not disturb the figures.
const normal = 100

// shop is the latency-critical service: nginx in front, which asks a gateway in this
// process and compresses what that answers. The gateway asks Redis.
type shop struct {
	front, back *rig.Group
	nginx       *rig.Nginx
	redis       *rig.Redis
	gateway     *http.Server
	// text is what nginx compresses, turns how long Redis' script runs.
	text  []byte
	turns int
}

// start starts both components in their groups, with a request that costs little.
func (s *shop) start(ctx context.Context, h *rig.Host, dir string) error {
	var err error
	if s.front, err = h.Group("shop-nginx", normal); err != nil {
		return err
	}
	if s.back, err = h.Group("shop-redis", normal); err != nil {
		return err
	}
	s.text, s.turns = rig.Prose(16<<10), 1000
	if s.redis, err = rig.StartRedis(ctx, s.back, dir, inFlight); err != nil {
		return err
	}
	if err := s.startGateway(ctx, dir); err != nil {
		return err
	}
	s.nginx, err = rig.StartNginx(ctx, s.front, dir, rig.Site{
		HTTP:   rig.Gzip + " upstream gateway { server unix:" + filepath.Join(dir, "gateway") + "; keepalive 512; }",
		Server: "location / { " + rig.Pass("gateway") + " proxy_buffers 64 16k; proxy_buffer_size 16k; }",
		Ready:  "/", Most: inFlight,
	})
	return err
}

// The gateway says when it asked Redis and had the answer, in ns since 1970.
const askedHeader, answeredHeader = "Redis-Asked", "Redis-Answered"

func (s *shop) startGateway(ctx context.Context, dir string) error {
	var c net.ListenConfig
	l, err := c.Listen(ctx, "unix", filepath.Join(dir, "gateway"))
	if err != nil {
		return fmt.Errorf("listen for nginx: %w", err)
	}
	s.gateway = &http.Server{ReadHeaderTimeout: patience, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked := time.Now()
		if err := s.redis.Turn(r.Context(), s.turns); err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set(askedHeader, strconv.FormatInt(asked.UnixNano(), 10))
		w.Header().Set(answeredHeader, strconv.FormatInt(time.Now().UnixNano(), 10))
		_, _ = w.Write(s.text) // nginx may be gone
	})}
	go func() { _ = s.gateway.Serve(l) }() // ends with close
	return nil
}

// do sends one request and reads its answer to the end.
func (s *shop) do(ctx context.Context) (answer, error) {
	header, err := s.nginx.Ask(ctx, "/")
	if err != nil {
		return answer{}, err
	}
	asked, err1 := strconv.ParseInt(header.Get(askedHeader), 10, 64)
	answered, err2 := strconv.ParseInt(header.Get(answeredHeader), 10, 64)
	if err := errors.Join(err1, err2); err != nil {
		return answer{}, fmt.Errorf("read from nginx: %w: %w", rig.ErrAnswer, err)
	}
	return answer{time.Unix(0, asked), time.Unix(0, answered)}, nil
}

// close ends both components and removes their groups, however far start came.
func (s *shop) close() error {
	s.nginx.Close()
	if s.gateway != nil {
		_ = s.gateway.Close() // nothing depends on its connections
	}
	s.redis.Close()
	var failed []error
	for _, g := range []*rig.Group{s.front, s.back} {
		if g != nil {
			failed = append(failed, g.Close())
		}
	}
	return errors.Join(failed...)
}
