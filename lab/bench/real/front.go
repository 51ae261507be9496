package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/lab/bench/rig"
	"github.com/trimtab/trimtab/lab/services"
	"github.com/trimtab/trimtab/lab/services/shape"
)

// This file puts a proxy before each service of scenarios mixed, which speak HTTP. It refuses requests.

// The proxies, as the end of the name of a policy: weights+haproxy, trimtab:social:spans:gate.
const frontHAProxy, frontGate = "haproxy", "gate"

// fixedLimit is HAProxy's maxconn for each service.
const fixedLimit = 3

// classHeader is where the class of a request stands.
const classHeader = "X-Priority"

// class returns the class of the k-th request of a service: a tenth is critical, three tenths are low.
func class(k int) int {
	switch k % 10 {
	case 0:
		return 0
	case 1, 4, 7:
		return 2
	}
	return 1
}

// errShed says that a proxy refused a request.
var errShed = errors.New("refused by the proxy")

// fronts are the proxies of a row.
type fronts struct {
	kind string
	// trimtab is the program of the gate, maxconn HAProxy's limit.
	trimtab string
	maxconn int

	processes []*rig.Process
	// admin are the addresses at which gates are bounded.
	admin   [3]string
	managed [3]*managed
}

// open starts a proxy before each service. otlp is where gates send spans; "": nowhere.
func (f *fronts) open(ctx context.Context, t *trial, otlp string) error {
	for i, s := range t.services {
		m, ok := s.software.(*managed)
		if !ok {
			return trimtab.Invalidf("a proxy before %s: it does not speak HTTP; want a scenario with mixed in its name", s.Name)
		}
		free, err := rig.FreeAddresses(2)
		if err != nil {
			return err
		}
		dir := filepath.Join(t.dir, "front-"+s.Name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("make directory of a proxy: %w", err)
		}
		args, err := f.args(dir, s, m.address, free, otlp)
		if err != nil {
			return err
		}
		p, err := rig.Start(rig.Program{Args: args, Dir: dir, Log: filepath.Join(dir, "said.log"), Stop: syscall.SIGTERM}, t.Control)
		if err != nil {
			return err
		}
		f.processes, f.admin[i], f.managed[i] = append(f.processes, p), "http://"+free[1], m
		m.front = free[0]
		if err := p.Await(ctx, func(ctx context.Context) error { return m.ask(ctx, 1, 0) }); err != nil {
			return err
		}
	}
	return nil
}

func (f *fronts) args(dir string, s *service, to string, free []string, otlp string) ([]string, error) {
	names := services.Classes()
	if f.kind == frontGate {
		args := []string{f.trimtab, "gate", "--listen", free[0], "--to", "http://" + to, "--workload", s.Name, "--within", s.SLO.Latency.String(),
			"--class", strings.ToLower(classHeader) + "=" + strings.Join(names[:], ","), "--admin", free[1]}
		if otlp != "" {
			args = append(args, "--otlp", "http://"+otlp)
		}
		return args, nil
	}
	binary, err := rig.Lookup("haproxy", "haproxy")
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "haproxy.cfg")
	text := fmt.Appendf(nil, haproxyConf, (s.SLO.Latency / 2).Milliseconds(), free[0], strings.ToLower(classHeader), names[0], names[2], to, f.maxconn)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return nil, fmt.Errorf("start haproxy: %w", err)
	}
	return []string{binary, "-db", "-f", file}, nil
}

// haproxyConf is HAProxy's configuration: a request that waited for half of the SLO is refused, and
// critical ones are served first.
const haproxyConf = `global
  maxconn 9000
defaults
  mode http
  timeout client 60s
  timeout server 60s
  timeout connect 5s
  timeout queue %[1]dms
  option abortonclose
  http-reuse always
frontend in
  bind %[2]s
  default_backend out
backend out
  http-request set-priority-class int(-10) if { req.hdr(%[3]s) %[4]s }
  http-request set-priority-class int(10) if { req.hdr(%[3]s) %[5]s }
  server one %[6]s maxconn %[7]d
`

// close ends the proxies. Requests go to the services again.
func (f *fronts) close() {
	if f == nil {
		return
	}
	for _, m := range f.managed {
		if m != nil {
			m.front = ""
		}
	}
	for _, p := range f.processes {
		p.Close()
	}
	f.processes = nil
}

// admitted is what came of the requests of the overloads of a row. Shares are of those sent in them.
type admitted struct {
	// Goodput is the CPU time of the requests in time, at their calibrated cost, over that of the pool.
	Goodput float64
	// InTime and Refused are those of the classes, Services the refused ones of each service.
	InTime   [3]float64
	Refused  [3]float64
	Services [3]float64
	// Before and After are the shares refused before the first overload and from 5 s after one.
	Before float64
	After  float64
}

// admission counts what was refused.
func (r *row) admission(t *trial) *admitted {
	spans := t.scenario.Overloads(t.whole)
	if len(spans) == 0 {
		return nil
	}
	var out admitted
	var in, refused, of, before, after [3]int
	var length time.Duration
	for _, span := range spans {
		length += span.To - span.From
	}
	for i, s := range t.services {
		lost, sent := 0, 0
		for k := range r.seen.outcomes[i] {
			o := &r.seen.outcomes[i][k]
			if !o.Sent {
				continue
			}
			over, settled := within(o.At, spans)
			switch {
			case over:
			case o.At < spans[0].From:
				before[0], before[1] = before[0]+1, before[1]+count1(o.Shed)
				continue
			default:
				if settled {
					after[0], after[1] = after[0]+1, after[1]+count1(o.Shed)
				}
				continue
			}
			c := class(k)
			of[c], sent = of[c]+1, sent+1
			refused[c], lost = refused[c]+count1(o.Shed), lost+count1(o.Shed)
			if o.met(s.SLO) {
				in[c]++
				out.Goodput += t.arrivals[i][k].Size * s.Cost.Seconds()
			}
		}
		out.Services[i] = ratio(share(lost, sent))
	}
	for c := range of {
		out.InTime[c], out.Refused[c] = ratio(share(in[c], of[c])), ratio(share(refused[c], of[c]))
	}
	out.Goodput /= t.Pool * length.Seconds()
	out.Before, out.After = ratio(share(before[1], before[0])), ratio(share(after[1], after[0]))
	return &out
}

func count1(is bool) int {
	if is {
		return 1
	}
	return 0
}

// afterwards is for how long after an overload requests may still be refused.
const afterwards = 5 * time.Second

// within tells whether a time is in an overload, and, if not, whether none ended shortly before.
func within(at time.Duration, spans []shape.Span) (over, settled bool) {
	settled = true
	for _, s := range spans {
		over = over || at >= s.From && at < s.To
		settled = settled && !(at >= s.To && at < s.To+afterwards)
	}
	return over, settled
}

// text says it for people.
func (a *admitted) text(names [3]string) string {
	var classes, refused []string
	for c, name := range services.Classes() {
		classes = append(classes, fmt.Sprintf("%s %s in time, %s refused", name, percent(a.InTime[c]), percent(a.Refused[c])))
	}
	for i, name := range names {
		refused = append(refused, name+" "+percent(a.Services[i]))
	}
	return fmt.Sprintf("while needs did not fit: goodput %.3f of the pool; %s; refused of %s; refused before %s, from 5 s after %s",
		a.Goodput, strings.Join(classes, "; "), strings.Join(refused, ", "), percent(a.Before), percent(a.After))
}
