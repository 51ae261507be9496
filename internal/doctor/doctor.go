// Package doctor checks whether a configuration would work on this host, with the servers that it
// names, and in its cluster. It returns a list of [Finding]s.
//
//	found := doctor.Examine(ctx, cfg, doctor.Location{Role: natsbus.Agent})
//
// It uses the same requests as the parts of the program, and changes nothing.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/kinds"
	"github.com/trimtab/trimtab/agent/knobs"
	"github.com/trimtab/trimtab/bus/natsbus"
	"github.com/trimtab/trimtab/collector/perf"
	"github.com/trimtab/trimtab/collector/poll"
	"github.com/trimtab/trimtab/collector/prometheus"
	"github.com/trimtab/trimtab/collector/sources"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/console/view"
	"github.com/trimtab/trimtab/internal/hint"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/internal/supervise"
	"github.com/trimtab/trimtab/internal/wire"
	"github.com/trimtab/trimtab/quantity"
)

// Finding is the result of one check.
type Finding struct {
	// Area is prometheus, query, nats, kubernetes, clock, storage, listener, host, knob or measure.
	Area string `json:"area"`
	// Subject is the checked part, in the terms of the configuration.
	Subject string `json:"subject"`
	// Level is ok, note (it works, with a remark) or bad (it will not work).
	Level string `json:"level"`
	// Text is the finding, Hint the remedy.
	Text string `json:"text"`
	Hint string `json:"hint,omitempty"`
}

// The levels of a finding.
const (
	FoundOK   = "ok"
	FoundNote = "note"
	FoundBad  = "bad"
)

// Location says for which process to check.
type Location struct {
	// Role is the one of that process; empty: all of them.
	Role natsbus.Role
	// Host is the name of the host; empty: its host name.
	Host string
}

// visit collects findings about one configuration.
type visit struct {
	ctx   context.Context
	cfg   *config.Config
	place Location
	// missing knobs are no error: they may be on another host
	here  bool
	found []Finding
	// counter is the command of the process that counts; nil: this program's own.
	counter []string
}

func (v *visit) add(area, subject, level, text, advice string) {
	v.found = append(v.found, Finding{area, subject, level, text, advice})
}

// failed adds an error as a finding, with the error's own hint if it has one.
func (v *visit) failed(area, subject string, err error, advice string) {
	if h := hint.Of(err); h != "" {
		advice = h
	}
	v.add(area, subject, FoundBad, strings.ReplaceAll(err.Error(), "\n", "; "), advice)
}

func newVisit(ctx context.Context, cfg *config.Config, p Location) *visit {
	if p.Host == "" {
		p.Host, _ = os.Hostname() // without one, knobs that name a host are not this host's
	}
	return &visit{ctx: ctx, cfg: cfg, place: p}
}

// Servers checks the servers that a configuration names: whether they answer, accept the
// credentials, and answer each query with a usable number. It changes nothing.
func Servers(ctx context.Context, cfg *config.Config, p Location) []Finding {
	v := newVisit(ctx, cfg, p)
	v.nats()
	v.prometheus()
	v.cluster()
	return v.found
}

// Examine does [Servers], and also checks this host: the rights on each knob, the clock, the
// storage, the addresses to listen on, and the measurements. It writes nothing but an empty file
// in the storage directory, which it removes at once.
func Examine(ctx context.Context, cfg *config.Config, p Location) []Finding {
	v := newVisit(ctx, cfg, p)
	v.nats()
	v.prometheus()
	v.cluster()
	v.clock()
	v.storage()
	v.listeners()
	v.knobs()
	v.scheduler("/sys/kernel/sched_ext")
	v.fast()
	v.shares()
	v.beside()
	v.measured()
	return v.found
}

// nats checks the external server, if there is one.
func (v *visit) nats() {
	if v.cfg.NATS.URL == "" {
		v.add("nats", "embedded", FoundOK, "the server runs in trimtab's own process", "")
		return
	}
	c, err := wire.Bus(v.cfg, v.place.Role, v.place.Host)
	if err != nil {
		v.failed("nats", "nats.token_file", err, "write the token into that file, and nothing else")
		return
	}
	c.Logger = slog.New(slog.DiscardHandler)
	found, err := natsbus.Reach(v.ctx, c)
	role := "every role"
	if v.place.Role != "" {
		role = "the role " + string(v.place.Role)
	}
	switch {
	case errors.Is(err, trimtab.ErrRefused):
		v.failed("nats", "nats.url", err, "trimtab init cluster writes the permissions of every role: copy nats-server.conf to the NATS servers and reload them")
		return
	case err != nil:
		v.failed("nats", "nats.url", err, "is a nats-server with JetStream running there? See nats in docs/config.md")
		return
	}
	v.add("nats", "nats.url", FoundOK, fmt.Sprintf("NATS %s answers in %v and lets this user do what %s needs", found.Server, found.Trip.Round(10*time.Microsecond), role), "")
	if len(found.Missing) > 0 {
		v.add("nats", "streams", FoundNote, "not made yet: "+strings.Join(found.Missing, ", "), "start a planner, or trimtab run: it makes them")
	}
}

// prometheus asks each query once.
func (v *visit) prometheus() {
	queries := wire.Queries(v.cfg)
	p := v.cfg.Prometheus
	if p.URL == "" {
		return
	}
	c := prometheus.Config{URL: p.URL, HTTP: p.HTTP, Interval: p.Interval, Timeout: p.Timeout, Queries: queries}
	ahead, within, err := prometheus.Clock(v.ctx, c)
	if err != nil {
		v.failed("prometheus", "prometheus.url", err, "is Prometheus running there, and does it accept these credentials? No query was asked")
		return
	}
	v.add("prometheus", "prometheus.url", FoundOK, fmt.Sprintf("answers in %v", within.Round(10*time.Microsecond)), "")
	if ahead.Abs() > within+time.Second {
		v.add("clock", "Prometheus", FoundNote, fmt.Sprintf("its clock is %v off this host's", ahead.Round(time.Millisecond)), "values are dated by Prometheus's own clock; synchronise both with chrony or systemd-timesyncd")
	}
	asked, err := prometheus.Ask(v.ctx, c)
	if err != nil {
		v.failed("prometheus", "queries", err, "try again")
		return
	}
	for _, a := range asked {
		v.query(a)
	}
}

// query checks the answer to one query.
func (v *visit) query(a prometheus.Asked) {
	subject := fmt.Sprintf("%s of %s", a.Query.Quantity, a.Query.Workload)
	one := a.Samples[0]
	if one.Missing != "" {
		v.add("query", subject, FoundBad, "no value: "+one.Missing, "ask Prometheus for it: "+a.Query.Expr)
		return
	}
	text := fmt.Sprintf("%.4g", one.Value)
	if len(a.Samples) > 1 {
		text = fmt.Sprintf("%d instances, the first has %.4g", len(a.Samples), one.Value)
	}
	if age := time.Since(one.Time); age > time.Second {
		text += fmt.Sprintf(", %v old", age.Round(time.Second))
	}
	level, advice := FoundOK, ""
	target := v.targetOf(a.Query.Workload)
	switch {
	case a.Query.Quantity == quantity.Performance && target > 0 && target <= 1 && one.Value > 1.5:
		level, advice = FoundBad, fmt.Sprintf("the SLO is a share, %v, and this is more than 1: divide percent by 100", target)
	case a.Query.Quantity == quantity.Allocation && v.cfg.Pool.Capacity() > 0 && one.Value > v.cfg.Pool.Capacity():
		level, advice = FoundBad, fmt.Sprintf("the pool has %v: divide millicores by 1000", v.cfg.Pool.Capacity())
	case a.Query.Quantity == quantity.Load && one.Value == 0:
		level, advice = FoundNote, "no requests now: is that so?"
	case a.Query.Quantity == quantity.Performance && a.Query.Requests != "" && one.Requests == 0:
		level, advice = FoundNote, "the number of requests is not known: "+a.Query.Requests+" has no value"
	}
	v.add("query", subject, level, text, advice)
}

// targetOf is the performance that is asked of a workload.
func (v *visit) targetOf(name string) float64 {
	for i := range v.cfg.Workloads {
		if w := &v.cfg.Workloads[i]; w.Name == name {
			return w.SLO.Target()
		}
	}
	return 0
}

// clock checks whether the host's clock is synchronised: a plan dated too far ahead is refused.
func (v *visit) clock() {
	kept, within, err := hostfs.ClockKept()
	switch {
	case err != nil:
		v.failed("clock", "this host", err, "trimtab does not need it on one host; on several, run chrony or systemd-timesyncd")
	case !kept:
		v.add("clock", "this host", FoundNote, "nothing synchronises the clock", fmt.Sprintf("on several hosts run chrony or systemd-timesyncd: a plan dated more than %v ahead is refused", v.cfg.Actuator.ClockSkew))
	default:
		v.add("clock", "this host", FoundOK, fmt.Sprintf("synchronised to within %v", within.Round(time.Millisecond)), "")
	}
}

// storage looks whether trimtab may write where it must.
func (v *visit) storage() {
	dir := v.cfg.Storage.Path
	at := dir
	for {
		if _, err := os.Stat(at); err == nil || at == filepath.Dir(at) {
			break
		}
		at = filepath.Dir(at)
	}
	f, err := os.CreateTemp(at, ".trimtab-doctor-*")
	if err != nil {
		v.failed("storage", dir, fmt.Errorf("write to %s: %w", at, err), "write storage: {path: DIR} with a directory of the user that runs trimtab")
		return
	}
	err = errors.Join(f.Close(), os.Remove(f.Name()))
	if err != nil {
		v.failed("storage", dir, err, "look at the file system")
		return
	}
	v.add("storage", dir, FoundOK, "this user may write there", "")
}

// listeners looks whether the addresses are free.
func (v *visit) listeners() {
	c := v.cfg
	for _, l := range []struct{ key, address string }{
		{"web.listen_address", c.Web.ListenAddress}, {"otlp.grpc", c.OTLP.GRPC}, {"otlp.http", c.OTLP.HTTP}, {"jaeger.grpc", c.Jaeger.GRPC}, {"nats.listen", c.NATS.Listen},
	} {
		if l.address == "" || l.address == "off" {
			continue
		}
		listener, err := net.Listen("tcp", l.address)
		if err != nil {
			v.add("listener", l.key, FoundNote, fmt.Sprintf("%s cannot be taken now: %v", l.address, err), "if that is the trimtab which runs now, stop it before you start another; if it is another program, choose another address")
			continue
		}
		listener.Close()
		v.add("listener", l.key, FoundOK, l.address+" is free", "")
	}
}

// knobs looks at each knob of this host, as the actuator does when it starts.
func (v *visit) knobs() {
	root, err := hostfs.CPURoot(v.cfg.Actuator.CgroupRoot)
	all := kinds.On(kinds.RDT(v.cfg.Actuator.LockDir))
	declared, also := v.declared(all)
	declared = slices.DeleteFunc(declared, func(d knobs.Declared) bool { return kinds.OfCluster(d.Kind) }) // see CheckCluster
	if !also || len(declared) == 0 {
		return
	}
	if err == nil {
		v.capacity(root)
	}
	for _, d := range declared {
		kind, err := actuator.KindOf(all, d.Kind)
		if err != nil {
			v.failed("knob", d.Place, err, "write another knob")
			continue
		}
		if !d.At.Several() {
			v.location(kind, d.At, d.Place, d.Like)
			continue
		}
		instances, err := kind.Find(v.ctx, d.At)
		switch {
		case err != nil:
			v.failed("knob", d.Place, err, adviceOf(d.Kind, "look at the directory"))
		case len(instances) == 0:
			v.add("knob", d.Place, FoundNote, "nothing matches now: the workload waits", "is the service running? systemd-cgls shows the groups")
		default:
			v.add("knob", d.Place, FoundOK, fmt.Sprintf("%d instances match", len(instances)), "")
			v.location(kind, d.At.Instance(instances[0].Name), d.Place+" ("+instances[0].Name+")", d.Like)
		}
	}
}

// declared lists the knobs of this host; ok is false when they cannot even be named.
func (v *visit) declared(all []actuator.Kind) (_ []knobs.Declared, ok bool) {
	declared, err := knobs.Of(all, v.cfg, v.place.Host)
	if err != nil {
		v.failed("knob", "all", err, "nothing can be set on this host: trimtab needs the cgroup file system with the cpu controller")
		return nil, false
	}
	return declared, true
}

// location opens the knobs at one location, and checks the value of each and whether it may be
// written.
func (v *visit) location(kind actuator.Kind, at actuator.Location, place string, like []actuator.Target) {
	v.accounted(at, place)
	for _, t := range like {
		subject := fmt.Sprintf("%s of %s, %s", t.Resource, t.Workload, place)
		opened, err := kind.Targets(at, []actuator.Target{t})
		if err != nil {
			v.failed("knob", subject, err, adviceOf(kind.Name, missingKnob(err)))
			continue
		}
		v.knob(subject, kind.Name, opened[0])
		_ = actuator.CloseTargets(opened) // nothing was written
	}
}

// accounted checks whether the CPU time of a cgroup version 1 group can be read if the kernel
// accounts it in a separate hierarchy: trimtab recommends no limit to a workload whose use it
// cannot see.
func (v *visit) accounted(at actuator.Location, place string) {
	beside := hostfs.Accounting(at.Root)
	if beside == "" {
		return
	}
	if _, err := os.Stat(filepath.Join(beside, at.Path, "cpuacct.usage")); err != nil {
		v.add("knob", place, FoundNote, fmt.Sprintf("the CPU time that it uses cannot be read: %v", err),
			fmt.Sprintf("make the same group below %s and put the processes into it, too: trimtab recommends no limit to a workload whose use it cannot see", beside))
	}
}

func (v *visit) knob(subject, kind string, t actuator.Target) {
	err := t.Knob.Probe(v.ctx)
	held := trimtab.Amount{}
	if err == nil {
		held, err = t.Knob.Read(v.ctx)
	}
	if err != nil {
		v.failed("knob", subject, err, adviceOf(kind, missingKnob(err)))
		return
	}
	text := "holds " + view.AmountIn(held, t.Resource) + "; trimtab may set it"
	if err := t.Knob.MayWrite(v.ctx); err != nil {
		level := FoundBad
		if t.Mode != trimtab.Act {
			level = FoundNote
		}
		advice := "run trimtab as root, or give its user the group: chown, or systemd's Delegate=yes"
		if errors.Is(err, trimtab.ErrRefused) {
			advice = "Delegate=yes in the unit, or force: true in the knob"
		}
		v.add("knob", subject, level, fmt.Sprintf("holds %s; trimtab may not set it: %v", view.AmountIn(held, t.Resource), err), adviceOf(kind, advice))
		return
	}
	v.add("knob", subject, FoundOK, text, "")
	v.moves(subject, t)
}

// adviceOf returns advice on a knob of that kind, other where it is in no server.
func adviceOf(kind, other string) string {
	switch kind {
	case "haproxy":
		return "HAProxy needs `stats socket PATH level admin`, which trimtab's user may write, and a backend and server of that name"
	case "envoy":
		return "Envoy needs that admin address, where this host reaches it, and `admin_layer: {}` as the last of its layered_runtime"
	case "gate":
		return "run `trimtab gate` with that admin address, where this host reaches it"
	}
	return other
}

// missingKnob returns advice for a knob that cannot be opened or read.
func missingKnob(err error) string {
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "it is not there: is the service running, and is the path relative to the cgroup root? systemd-cgls shows the groups"
	case errors.Is(err, os.ErrPermission):
		return "this user may not read it: run trimtab as root, or as the user that the group was delegated to"
	case errors.Is(err, trimtab.ErrUnsupported):
		return "this kernel or host has no such limit: remove it from the knob"
	}
	return "trimtab leaves it alone until it can be read"
}

// capacity compares the pool's capacity with that of this host.
func (v *visit) capacity(root string) {
	if v.cfg.Pool.CPU == 0 {
		return
	}
	has, err := hostfs.CPUs(root)
	if err != nil {
		return // a tree of plain files is no host's
	}
	if has -= v.cfg.Actuator.Reserve.CPU; v.cfg.Pool.CPU > has+1e-9 && v.cfg.NATS.URL == "" {
		v.add("host", "pool.cpu", FoundNote, fmt.Sprintf("the pool shares %v cores, and this host has %v", v.cfg.Pool.CPU, has), fmt.Sprintf("on one host write pool: {cpu: %v}", has))
		return
	}
	v.add("host", "pool.cpu", FoundOK, fmt.Sprintf("the pool shares %v cores, this host has %v", v.cfg.Pool.CPU, has), "")
}

// measured checks whether the configured measurements are possible, with the rights of the
// measuring process.
func (v *visit) measured() {
	for _, of := range sources.All() {
		settings, asked := v.cfg.Measure.Asks(of)
		if of.Check == nil || !asked {
			continue
		}
		at := "measure.sources." + of.Name
		lacks, err := poll.Probe(of, poll.Config{Host: v.place.Host, Settings: settings})
		switch {
		case err != nil:
			v.failed("measure", at, err, "see the table of sources in docs/config.md")
		case len(lacks) > 0:
			v.add("measure", at, FoundBad, strings.Join(lacks, "; "), "what is there is read, the rest is missing")
		default:
			v.add("measure", at, FoundOK, "it tells all that is read of it", "")
		}
	}
	if !v.cfg.Measure.Perf {
		return
	}
	command, err := supervise.Command(v.counter, "perf-counter")
	var a perf.Ability
	if err == nil {
		a, err = perf.Probe(v.ctx, command)
	}
	switch {
	case err != nil:
		v.failed("measure", "measure.perf", err, "run trimtab perf-counter by hand: it says what stops it")
	case len(a.Software) == 0:
		v.add("measure", "measure.perf", FoundBad, "no performance counter can be opened with the rights of the process that counts, CAP_PERFMON at most: "+strings.Join(a.Missing, "; "),
			"run the agent as root or with CAP_PERFMON; where kernel.perf_event_paranoid is over 2, as on Debian, set it to 2, too")
	case len(a.Hardware) == 0:
		v.add("measure", "measure.perf", FoundNote, "software events only: "+strings.Join(a.Missing, "; "), "a virtual machine often has no hardware counters")
	default:
		v.add("measure", "measure.perf", FoundOK, fmt.Sprintf("%d hardware and %d software events", len(a.Hardware), len(a.Software)), "")
	}
}
