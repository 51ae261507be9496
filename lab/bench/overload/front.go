package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/trimtab/trimtab/internal/haproxy"
	"github.com/trimtab/trimtab/lab/bench/rig"
	"github.com/trimtab/trimtab/lab/limiter"
)

// The rows: what stands before the service.
const (
	rowNothing   = "nothing"
	rowWeights   = "weights"
	rowHAProxy   = "haproxy"
	rowManaged   = "trimtab-haproxy"
	rowGradient2 = limiter.Gradient2
	rowEnvoy     = limiter.Envoy
	rowGate      = "gate"
)

// rowPlain is a proxy of Go's library that has no limit: it stands only beside what other proxies
// take of themselves.
const rowPlain = "go"

// rowNames are all of them, in order.
func rowNames() []string {
	return []string{rowNothing, rowWeights, rowHAProxy, rowGradient2, rowEnvoy, rowManaged, rowGate}
}

// front is a proxy that stands before a service; nil: nothing does.
type front struct {
	address string
	process *rig.Process
}

// fronts starts proxies.
type fronts struct {
	group *rig.Group
	dir   string
	// trimtab is the program, within the SLO's latency that the gate is told.
	trimtab string
	within  time.Duration
}

// start starts the proxy of a row before an address; maxconn is HAProxy's, 0: it has no limit.
func (f *fronts) start(ctx context.Context, row, to, path string, maxconn int) (*front, error) {
	switch row {
	case rowNothing, rowWeights:
		return nil, nil
	}
	free, err := rig.FreeAddresses(2)
	if err != nil {
		return nil, err
	}
	var args []string
	switch row {
	case rowHAProxy, rowManaged:
		args, err = f.haproxy(row, free[0], to, maxconn)
	case rowGate:
		args = []string{f.trimtab, "gate", "--listen", free[0], "--to", "http://" + to, "--workload", "bench",
			"--within", f.within.String(), "--class", strings.ToLower(classHeader) + "=" + strings.Join([]string{critical, normal, low}, ","), "--admin", free[1]}
	default:
		args, err = childArgs(childProxy, "--listen", free[0], "--to", to, "--limiter", row)
	}
	if err != nil {
		return nil, err
	}
	p, err := startAt(ctx, f.group, f.dir, path, free[0], args...)
	if err != nil {
		return nil, err
	}
	return &front{free[0], p}, nil
}

func (f *front) close() {
	if f != nil {
		f.process.Close()
	}
}

// resident is the memory of the proxy in bytes; 0: there is none.
func (f *front) resident() int64 {
	if f == nil {
		return 0
	}
	return int64(rig.Number(fmt.Sprintf("/proc/%d/status", f.process.PID()), "VmRSS:")) << 10
}

// haproxyConf is the part of HAProxy's configuration that all rows share.
const haproxyConf = `global
  maxconn 9000
  stats socket %s mode 600 level admin
defaults
  mode http
  timeout client 60s
  timeout server 60s
  timeout connect 5s
  http-reuse always
frontend in
  bind %s
  default_backend out
`

// bestConf is the backend with the best fixed limit; maxconn 0 is none. A request that waited for half of
// the SLO is refused, one whose client is gone leaves the queue, and critical requests are served first.
const bestConf = `backend out
  timeout queue %[1]dms
  option abortonclose
  http-request set-priority-class int(-10) if { req.hdr(%[2]s) critical }
  http-request set-priority-class int(10) if { req.hdr(%[2]s) low }
  server one %[3]s maxconn %[4]d
`

// socket is where HAProxy's runtime API is.
func (f *fronts) socket() string { return filepath.Join(f.dir, "haproxy.sock") }

// classes are those by which HAProxy refuses where trimtab sets its limits.
func (f *fronts) classes() haproxy.Classes {
	return haproxy.Classes{Backend: "out", Map: filepath.Join(f.dir, "haproxy.map"), Header: strings.ToLower(classHeader), Names: []string{critical, normal, low}}
}

// haproxy writes the configuration of a row, and returns the command.
func (f *fronts) haproxy(row, listen, to string, maxconn int) ([]string, error) {
	binary, err := rig.Lookup("haproxy", "haproxy")
	if err != nil {
		return nil, err
	}
	c := f.classes()
	text := fmt.Sprintf(haproxyConf, f.socket(), listen)
	if row == rowManaged {
		text += c.Lines(f.within*3/4) + fmt.Sprintf("  server one %s\n", to)
		err = os.WriteFile(c.Map, []byte(c.File()), 0o600)
	} else {
		text += fmt.Sprintf(bestConf, (f.within / 2).Milliseconds(), c.Header, to, maxconn)
	}
	file := filepath.Join(f.dir, "haproxy.cfg")
	if err = errors.Join(err, os.WriteFile(file, []byte(text), 0o600)); err != nil {
		return nil, fmt.Errorf("start haproxy: %w", err)
	}
	return []string{binary, "-db", "-f", file}, nil
}
