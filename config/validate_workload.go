package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/trimtab/trimtab"
)

// maxWorkloads bounds one pool.
const maxWorkloads = 10_000

func (v *validator) workloads() {
	all := v.config.Workloads
	if len(all) > maxWorkloads {
		v.fail("workloads", fmt.Sprintf("%d workloads, limit %d", len(all), maxWorkloads), "split them over several pools")
		return
	}
	names := map[string]string{}
	for i := range all {
		at := fmt.Sprintf("workloads[%d]", i)
		all[i].check(v, at)
		if first, twice := names[all[i].Name]; twice && all[i].Name != "" {
			v.fail(at+".name", fmt.Sprintf("a second workload %q", clip(all[i].Name)), fmt.Sprintf("the first is in line %d: give each its own name", v.where(first).line))
		} else {
			names[all[i].Name] = at + ".name"
		}
	}
	v.overlaps()
	v.sameSpans()
	v.links()
	limitedTwice(v)
	v.jobsApart()
}

func (w *Workload) check(v *validator, at string) {
	if !v.has(at + ".name") {
		v.fail(at, "this workload has no name", "write - name: checkout")
	} else {
		v.name(at+".name", "workload name", w.Name)
	}
	if w.Mode != "" && !slices.Contains(modes(), string(w.Mode)) {
		v.meant[at+".mode"] = true // what it was to be is not known
		v.fail(at+".mode", fmt.Sprintf("unknown mode %q", clip(string(w.Mode))), suggest(string(w.Mode), modes()))
	}
	if v.config.IsJob(w) {
		w.checkMatch(v, at)
		w.checkJob(v, at)
		return
	}
	w.checkNoJob(v, at)
	w.inherit(v.has(at + ".knob"))
	w.Match.Kubernetes.check(v, at+".match.kubernetes")
	if w.Knob.Host != "" {
		v.name(at+".knob.host", "host name", w.Knob.Host)
	}
	w.checkSlo(v, at)
	w.checkUtility(v, at)
	w.checkMatch(v, at)
	w.checkQueries(v, at)
	w.checkSenses(v, at)
	w.checkFallback(v, at)
	w.checkServpods(v, at)
	w.checkKnob(v, at)
}

func (w *Workload) checkSlo(v *validator, at string) {
	s, where := &w.SLO, at+".slo"
	latency, performance := v.has(where+".latency") || v.has(where+".fraction"), v.has(where+".performance")
	switch {
	case v.has(where + ".object"):
		w.importSLO(v, at, "object")
		return
	case v.has(where + ".file"):
		w.importSLO(v, at, "file")
		return
	case v.lost(where):
		return
	case !v.has(where):
		if w.Mode != trimtab.Off && !w.isComponent(v) && !w.Knob.MemoryAlone(&v.config.Pool) && !v.lost(at+".mode") {
			v.fail(at, fmt.Sprintf("workload %q has no slo", clip(w.Name)), "write slo: {latency: 200ms, fraction: 0.95}, or mode: off")
		}
		return
	case latency && performance:
		v.fail(where+".performance", "slo has both a latency and a performance", "keep latency and fraction, or performance")
		return
	case performance:
		if !(s.Performance > 0) {
			v.fail(where+".performance", fmt.Sprintf("performance is %v, want more than 0", s.Performance), "write the performance that is good enough, in the unit of the query")
		}
		if w.Performance == "" && w.Fallback.Profile == "" && w.Fallback.Demand == 0 && !v.lost(at+".performance", at+".fallback") {
			v.fail(where+".performance", "slo.performance needs a performance query", "write performance: PromQL, or slo: {latency: 200ms, fraction: 0.95}, or a fallback: {demand: …}")
		}
		return
	}
	if v.lost(where+".latency", where+".fraction", where+".performance") {
		return
	}
	if !v.has(where + ".latency") {
		v.fail(where, "slo has no latency", "write the time that a request may take, such as latency: 200ms")
	} else if s.Latency <= 0 || s.Latency > time.Hour {
		v.fail(where+".latency", fmt.Sprintf("latency is %s, want more than 0s and at most 1h", short(s.Latency)), "write the time a request may take, such as 200ms")
	}
	if !v.has(where + ".fraction") {
		v.fail(where, "slo has no fraction", "write the fraction of requests under the latency, such as fraction: 0.95")
	} else if !(s.Fraction > 0 && s.Fraction < 1) {
		hint := "write a share of requests, such as 0.95"
		switch {
		case s.Fraction == 1:
			hint = "no finite allocation keeps every request under a latency: write 0.999"
		case s.Fraction > 1 && s.Fraction <= 100:
			hint = fmt.Sprintf("write a share of 1: %v%% is %s", s.Fraction, rounded(s.Fraction/100))
		}
		v.fail(where+".fraction", fmt.Sprintf("fraction is %v, want more than 0 and less than 1", s.Fraction), hint)
	}
}

func (w *Workload) checkUtility(v *validator, at string) {
	if !v.has(at + ".utility") {
		return
	}
	where := at + ".utility"
	slo := w.SLO.Target()
	if !(slo > 0) {
		slo = 1
	}
	_, err := Utility(w.Utility, slo)
	var e *expressionError
	if !errors.As(err, &e) {
		return
	}
	hint := e.hint
	if best := nearest(w.Utility, []string{"linear", "quadratic", "sqrt"}); best != "" {
		hint = fmt.Sprintf("did you mean %q?", best)
	}
	v.report(v.inside(where, e.line, e.column), e.message, hint)
}

// inside converts a position in a text (line from 1, column from 0) into one of the file.
func (v *validator) inside(path string, line, column int) position {
	at := v.where(path)
	switch n := v.texts[path].(type) {
	case *ast.LiteralNode: // the block begins in the next line, indented
		if t := n.Value.GetToken(); t != nil {
			indent := len(t.Origin) - len(strings.TrimLeft(t.Origin, " \n"))
			indent -= strings.Count(t.Origin[:indent], "\n")
			return position{at.line + line, indent + 1 + column}
		}
	case *ast.StringNode:
		if line > 1 {
			return at
		}
		if t := n.GetToken(); t != nil && strings.HasPrefix(strings.TrimLeft(t.Origin, " \n"), t.Value) {
			return position{at.line, at.col + column}
		}
		return position{at.line, at.col + 1 + column} // behind the quote
	}
	return at
}

func (w *Workload) checkMatch(v *validator, at string) {
	for name, values := range w.Match.Spans {
		where := at + ".match.spans." + name
		if len(values) == 0 || slices.Contains(values, "") {
			v.fail(where, fmt.Sprintf("attribute %s has no value to match", clip(name)), "write "+clip(name)+": value, or [a, b]")
		}
	}
	if v.has(at+".match.spans") && len(w.Match.Spans) == 0 {
		v.fail(at+".match.spans", "match.spans is empty", "it would match every span: write service.name: NAME, or remove the key")
	}
	if v.has(at+".match.alert") && len(w.Match.Alert) == 0 {
		v.fail(at+".match.alert", "match.alert is empty", "write service: NAME, or remove the key")
	}
	for section, labels := range map[string]map[string]string{"prometheus": w.Match.Prometheus, "alert": w.Match.Alert} {
		for name, value := range labels {
			where := at + ".match." + section + "." + name
			if !labelName(name) {
				v.report(v.keyAt[where], fmt.Sprintf("%q is not a label name", clip(name)), "use letters, digits and _; do not begin with a digit")
			} else if len(value) > 4096 {
				v.fail(where, fmt.Sprintf("the value of %s has %d bytes, limit 4096", name, len(value)), "shorten it")
			}
		}
	}
}

func (w *Workload) checkQueries(v *validator, at string) {
	for _, q := range []struct{ key, text string }{
		{"load", w.Load}, {"performance", w.Performance}, {"requests", w.Requests}, {"allocation", w.Allocation}, {"usage", w.Usage}, {"fallback.proxy", w.Fallback.Proxy},
	} {
		where := at + "." + q.key
		if !v.has(where) {
			continue
		}
		places, bad := scanQuery(q.text)
		if bad == nil {
			bad = checkPromQL(q.text)
		}
		switch {
		case bad != nil:
			line := 1 + strings.Count(q.text[:bad.at], "\n")
			column := bad.at - (strings.LastIndexByte(q.text[:bad.at], '\n') + 1)
			v.report(v.inside(where, line, column), bad.message, bad.hint)
		case len(places) > 0 && len(w.Match.Prometheus) == 0 && w.Match.Kubernetes == nil && v.lost(at+".match", at+".match.prometheus"):
		case len(places) > 0 && len(w.Match.Prometheus) == 0 && w.Match.Kubernetes == nil:
			v.report(v.inside(where, 1, 0), "$match stands for the labels under match.prometheus, and there are none", "write match: {prometheus: {namespace: …, deployment: …}} for this workload")
		case v.config.Prometheus.URL == "" && !v.lost("prometheus", "prometheus.url"):
			v.fail(where, "there is no Prometheus to ask", "write prometheus: {url: http://127.0.0.1:9090} at the top of the file")
		}
	}
	if v.has(at+".requests") && !v.has(at+".performance") && !v.lost(at+".performance") {
		v.fail(at+".requests", "requests without performance", "requests says what performance was taken over: write both, or none")
	}
}

func (w *Workload) checkKnob(v *validator, at string) {
	k, where := &w.Knob, at+".knob"
	if v.lost(where, where+".cgroup", where+".process") {
		return
	}
	if !k.Declared() {
		if v.has(where) {
			v.fail(where, "knob has neither cgroup nor kubernetes nor process", "write knob: {cgroup: PATH, cpu: {min: 0.1, max: 4}}")
		} else if w.Mode != trimtab.Off && !v.lost(at+".mode") {
			v.fail(at, fmt.Sprintf("workload %q has no knob", clip(w.Name)), "write knob: {cgroup: PATH, cpu: {min: 0.1, max: 4}}, or mode: off")
		}
		return
	}
	if bad := k.twoLocations(); bad != "" {
		v.fail(where+"."+bad, "knob has two of cgroup, kubernetes and process", "one workload has one knob: remove the others")
		return
	}
	kind, resource, other := k.firstResource(v)
	if v.has(where + "." + other) {
		v.fail(where+"."+other, fmt.Sprintf("a %s knob has no %s", kind, other), fmt.Sprintf("write %s: {min: …, max: …}", resource))
	}
	if pool := v.config.Pool.Resource(); pool != resource && !v.lost("pool", "pool.cpu", "pool.workers", "pool.resources") {
		hint := fmt.Sprintf("write pool: {%s: CAPACITY}", resource)
		if pool == "" {
			v.fail(where, "the pool has no capacity for this knob", hint)
		} else {
			v.fail(where, fmt.Sprintf("a %s knob turns %s, and the pool shares %s", kind, resource, pool), hint)
		}
	}
	switch {
	case k.Process != nil:
		k.Process.check(v, where+".process")
	case k.Kubernetes == nil:
		v.cgroup(where+".cgroup", k.Cgroup)
	}
	k.checkClusterKnob(v, where)
	k.Replicas.checkZero(v, where+".replicas", w.Load)
	if b := k.Bounds(); b == nil || resource == trimtab.CPU && k.CPU == nil {
		if !v.lost(where+"."+resource) && !k.MemoryAlone(&v.config.Pool) {
			v.fail(where, "knob has no bounds", fmt.Sprintf("write %s: {min: …, max: …}", resource))
		}
	} else {
		at := where + "." + resource
		if resource == v.config.Pool.only() {
			at = v.keyOf(where, resource)
		}
		b.check(v, at, resource)
	}
	k.checkCap(v, where+".cpu.cap")
	k.checkNamedBounds(v, where)
	k.checkFurtherBounds(v, where)
	k.checkLinked(v, where)
	k.checkConcurrency(v, where)
	k.checkRate(v, where)
}

// checkCap checks how CPU time is bounded.
func (k *Knob) checkCap(v *validator, where string) {
	if k.CPU == nil || k.CPU.Cap == "" {
		return
	}
	known := []string{CapAuto, CapNever, CapAlways}
	switch {
	case !slices.Contains(known, k.CPU.Cap):
		v.fail(where, fmt.Sprintf("unknown cap %q", clip(k.CPU.Cap)), suggest(k.CPU.Cap, known))
	case k.Cgroup == "" && k.Kubernetes == nil:
		v.fail(where, "only control groups and pods share CPU time by weight", "remove cap: the limit itself is set")
	case k.CPU.Cap == CapNever && k.Kubernetes != nil && k.Kubernetes.AddLimits:
		v.fail(where, "cap: never sets no limits, and kubernetes.add_limits adds some", "remove one of the two")
	}
}

// cgroup refuses what could lie outside of the root.
func (v *validator) cgroup(where, p string) {
	p, except, excludes := strings.Cut(p, " !")
	bad := func(name string) bool {
		return name == "" || strings.Count(name, "*") > 1 || strings.ContainsAny(name, "/?[]{}")
	}
	switch {
	case strings.ContainsAny(p, "[]{}"):
		v.fail(where, fmt.Sprintf("cgroup %q: [] and {} have no meaning in a pattern, and are not for names", clip(p)),
			"write * for the name of the instance, and behind it what it must not be, as in machine.slice/libpod-*.scope !conmon-*")
	case excludes && (!strings.Contains(p, "*") || slices.ContainsFunc(strings.Split(except, " !"), bad)):
		v.fail(where, fmt.Sprintf("cgroup %q leaves out %q", clip(p), clip(except)),
			"write names that the * must not stand for, each behind a space and !, with at most one *, as in machine.slice/libpod-*.scope !conmon-* !test")
	case strings.HasPrefix(p, "/"):
		v.fail(where, fmt.Sprintf("cgroup %q is absolute", clip(p)), "write it relative to the cgroup root: "+strings.TrimLeft(strings.TrimPrefix(p, "/sys/fs/cgroup"), "/"))
	case slices.Contains(strings.Split(p, "/"), ".."):
		v.fail(where, fmt.Sprintf("cgroup %q leaves the root", clip(p)), "write the path without ..")
	case strings.Count(p, "*") > 1:
		v.fail(where, fmt.Sprintf("cgroup %q has more than one *", clip(p)), "one * stands for the name of the instance, within one part of the path, as in shop.slice/checkout@*.service")
	case !filepath.IsLocal(p) || path.Clean(p) != p || p == "." || strings.ContainsAny(p, "\x00\n?") || len(p) > 1024:
		v.fail(where, fmt.Sprintf("cgroup %q is not a plain path", clip(p)), "write it as in shop.slice/checkout.service")
	}
}

func (p *Process) check(v *validator, where string) {
	if p.Dir == "" {
		v.fail(where, "process has no dir", "write dir: DIR, and run the service as: trimtab workers --dir DIR -- COMMAND")
		return
	}
	where += ".dir"
	switch {
	case !filepath.IsAbs(p.Dir):
		v.fail(where, fmt.Sprintf("dir %q is not absolute", clip(p.Dir)), "write the whole path, such as /srv/shop")
	case !strings.Contains(p.Dir, "*"):
	case slices.Contains(strings.Split(p.Dir, "/"), ".."):
		v.fail(where, fmt.Sprintf("dir %q leaves its root", clip(p.Dir)), "write the path without ..")
	case strings.Count(p.Dir, "*") > 1:
		v.fail(where, fmt.Sprintf("dir %q has more than one *", clip(p.Dir)), "one * stands for the name of the instance, within one part of the path, as in /srv/shop/checkout-*")
	case path.Clean(p.Dir) != p.Dir || strings.ContainsAny(p.Dir, "\x00\n?") || len(p.Dir) > 1024:
		v.fail(where, fmt.Sprintf("dir %q is not a plain path", clip(p.Dir)), "write it as in /srv/shop/checkout-*")
	}
}

func (b *Bounds) check(v *validator, where string, resource string) {
	for _, f := range []struct {
		key   string
		value float64
	}{{"min", b.Min}, {"max", b.Max}, {"default", b.Default}} {
		if !v.has(where + "." + f.key) {
			continue
		}
		if !(f.value > 0) {
			v.fail(where+"."+f.key, fmt.Sprintf("%s is %v, want more than 0", f.key, f.value), "nothing runs on 0; to keep trimtab away write mode: off")
			return
		}
		if r := trimtab.ResourceOf(resource); r.Step == 1 && f.value != math.Trunc(f.value) {
			v.fail(where+"."+f.key, fmt.Sprintf("%s is %v, want a whole number of %s", f.key, f.value, r.Unit), "round it")
			return
		}
	}
	b.checkOrder(v, where, Share{Name: resource, Capacity: v.config.Pool.Capacity()})
}

// checkOrder checks min, max and default against each other and the capacity.
func (b *Bounds) checkOrder(v *validator, where string, of Share) {
	capacity := of.Capacity
	show := func(x float64) string { return amount(of.Name, x) }
	switch {
	case b.Max > 0 && b.Min > b.Max:
		v.fail(where+".min", fmt.Sprintf("min %s is more than max %s", show(b.Min), show(b.Max)), fmt.Sprintf("swap them: min: %s, max: %s", show(b.Max), show(b.Min)))
	case b.Default > 0 && (b.Default < b.Min || b.Max > 0 && b.Default > b.Max):
		v.fail(where+".default", fmt.Sprintf("default %s is not between min %s and max %s", show(b.Default), show(b.Min), show(b.Max)), "write one of the amounts between them")
	case capacity > 0 && b.Max > capacity:
		v.warn(where+".max", fmt.Sprintf("max %s is more than the pool's capacity %s", show(b.Max), show(capacity)), "it will never have that much")
	}
}

// sums refuses bounds that cross once defaults are filled in, and minimums that
// cannot all be kept.
func (v *validator) sums() {
	capacity, sum := v.config.Pool.Capacity(), 0.0
	for i := range v.config.Workloads {
		w := &v.config.Workloads[i]
		b := w.Knob.Bounds()
		if b == nil || v.config.IsJob(w) {
			continue
		}
		if b.Min > b.Max {
			v.fail(fmt.Sprintf("workloads[%d].knob", i), fmt.Sprintf("min %v is more than max %v", b.Min, b.Max), "write both, between one unit and the pool's capacity")
		}
		if w.Mode != trimtab.Off && !w.Knob.Several() { // the number of instances is not known here
			sum += b.Min
		}
	}
	if capacity > 0 && sum > capacity*(1+1e-9) {
		at := v.config.Pool.keyOfFirst()
		v.fail(at, fmt.Sprintf("the workloads' min add up to %.6g, more than the capacity %v", sum, capacity), "lower some min or raise the capacity")
	}
	v.furtherSums()
}

// checkFallback checks the substitute for a workload's performance.
func (w *Workload) checkFallback(v *validator, at string) {
	f, where := &w.Fallback, at+".fallback"
	if !v.has(where) {
		return
	}
	if !v.has(where+".proxy") && !v.has(where+".profile") && !v.has(where+".demand") {
		v.fail(where, "fallback is empty", "write fallback: {demand: 2}, {profile: FILE} or {proxy: PromQL}")
		return
	}
	if !w.Knob.Declared() {
		v.fail(where, "a fallback without a knob", "trimtab plans only for a workload with a knob: write knob: …, or remove fallback")
	} else if w.Knob.MemoryAlone(&v.config.Pool) {
		v.fail(where, "a fallback of a workload whose memory alone is planned", "write bounds of "+cmp.Or(v.config.Pool.Resource(), trimtab.CPU)+" in the knob, or remove fallback")
	}
	if f.Proxy != "" && w.Performance == "" && w.SLO.Latency == 0 {
		v.fail(where+".proxy", "proxy replaces a performance query, and there is none", "write it as performance: PromQL")
	}
	if v.has(where+".profile") && f.Profile == "" {
		v.fail(where+".profile", "profile names no file", "write the path of a CSV file, or remove the key")
	}
	if !v.has(where + ".demand") {
		return
	}
	if !(f.Demand > 0 && f.Demand <= 1e15) {
		v.fail(where+".demand", fmt.Sprintf("demand is %v, want more than 0", f.Demand), "write the amount that is enough, in the pool's resource")
	} else if b := w.Knob.Bounds(); b != nil && b.Max > 0 && f.Demand > b.Max {
		v.warn(where+".demand", fmt.Sprintf("demand %v is more than the knob's max %v", f.Demand, b.Max), "it will never have that much")
	}
}

// maxServpods bounds the components whose thresholds are declared.
const maxServpods = 1000

// checkServpods checks the thresholds of components.
func (w *Workload) checkServpods(v *validator, at string) {
	where := at + ".servpods"
	if v.has(at+".max_load") && !(w.MaxLoad > 0 && w.MaxLoad <= 1e9) {
		v.fail(at+".max_load", fmt.Sprintf("max_load is %v, want more than 0 and at most 1e9", w.MaxLoad), "write requests per second, such as 400, or remove the key")
	}
	if len(w.Servpods) > maxServpods {
		v.fail(where, fmt.Sprintf("%d components, want at most %d", len(w.Servpods), maxServpods), "declare those of one workload")
		return
	}
	if len(w.Servpods) > 0 && w.SLO.Latency == 0 {
		v.fail(where, "thresholds without an SLO of latency", "write slo: {latency: 200ms, fraction: 0.99}, or remove servpods")
	}
	for _, name := range slices.Sorted(maps.Keys(w.Servpods)) {
		s, of := w.Servpods[name], where+"."+name
		if name == "" || len(name) > 253 {
			v.fail(where, fmt.Sprintf("component %.40q", name), "write its service.name, of 1 to 253 bytes")
			continue
		}
		limits := map[string]float64{"loadlimit": s.LoadLimit, "slacklimit": s.SlackLimit}
		for _, key := range []string{"loadlimit", "slacklimit"} {
			if x := limits[key]; v.has(of+"."+key) && !(x > 0 && x <= 1) {
				v.fail(of+"."+key, fmt.Sprintf("%s is %v, want more than 0, at most 1", key, x), "write a share, such as 0.8, or remove the key")
			}
		}
		if !v.has(of+".loadlimit") && !v.has(of+".slacklimit") {
			v.fail(of, "no threshold", "write {loadlimit: 0.8}, {slacklimit: 0.1} or both")
		}
	}
}
