package config

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/trimtab/trimtab"
)

// The comments of the fields below are the documentation of the file, as in
// config.go.

// Rate bounds how many requests to a workload are admitted per second, at the proxy before it.
type Rate struct {
	// Admin address of its trimtab gate: http://HOST:PORT, or unix:/PATH. It may be that of concurrency. Left out: the HAProxy of concurrency, which needs its map, admits whole requests per second, and never more than the rate.
	Gate string `yaml:"gate"`
	// Least that it may be, in requests per second. Left out: 1.
	Min float64 `yaml:"min" want:"0.001 to 1000000" hint:"with none nothing would ever be answered"`
	// Most that it may be, in requests per second, and what no limit counts as. Left out: 1000000.
	Max float64 `yaml:"max" want:"0.001 to 1000000" hint:"the default is 1000000"`
	// A fixed rate, which trimtab keeps set. Left out: cores × highest use at the SLO / CPU time of a request, once both were measured; until then it stays as it is. The gate lets up to 1.5 times as many in while its service is not busy, but never more than a fixed rate.
	Value float64 `yaml:"value" want:"0.001 to 1000000" hint:"remove it: trimtab then derives the rate"`
	// Fixed rates of single classes of its requests, within the rate of all, by the names that the gate has for them: {low: 20}.
	Classes map[string]float64 `yaml:"classes"`
}

// mostRate is the largest rate that can be set, in requests per second.
const mostRate = 1e6

// fill sets what was left out.
func (r *Rate) fill() {
	if r == nil {
		return
	}
	r.Min = cmp.Or(r.Min, min(1, cmp.Or(r.Max, 1), cmp.Or(r.Value, 1)))
	r.Max = cmp.Or(r.Max, mostRate)
}

// Admission is one limit of the requests to a workload, at what admits them.
type Admission struct {
	// Resource is trimtab.Concurrency or trimtab.Rate.
	Resource string
	// Kind, Root and Path say where it is, as [Config.Location] does.
	Kind, Root, Path string
	// Class names the requests that it is for; "": all.
	Class string
	// Value is the fixed limit; 0: it is derived.
	Value float64
}

// Instance names the knob of an admission beside others of its workload and resource; "": it is for
// all requests.
func (a *Admission) Instance() string {
	if a.Class == "" {
		return ""
	}
	return "class=" + a.Class
}

// Admissions lists where requests are limited before they reach a workload.
func (k *Knob) Admissions() (all []Admission) {
	if c := k.Concurrency; c != nil {
		a := Admission{Resource: trimtab.Concurrency, Kind: "gate", Path: c.Gate, Value: float64(c.Value)}
		switch {
		case c.Envoy != nil:
			a.Kind, a.Root, a.Path = "envoy", c.Envoy.Admin, c.Envoy.Key
		case c.HAProxy != nil:
			a.Kind, a.Root, a.Path = "haproxy", c.HAProxy.Socket, c.HAProxy.path()
		}
		all = append(all, a)
	}
	if r := k.Rate; r != nil {
		a := Admission{Resource: trimtab.Rate, Kind: "gate", Path: r.Gate, Value: r.Value}
		if h := k.rated(); h != nil {
			a.Kind, a.Root, a.Path = "haproxy", h.Socket, h.Backend+h.Map
		}
		all = append(all, a)
		for _, a.Class = range slices.Sorted(maps.Keys(r.Classes)) {
			a.Value = r.Classes[a.Class]
			all = append(all, a)
		}
	}
	return all
}

// rated returns the HAProxy that limits the rate; nil: a gate does.
func (k *Knob) rated() *HAProxy {
	if k.Rate.Gate != "" || k.Concurrency == nil || k.Concurrency.HAProxy == nil || k.Concurrency.HAProxy.Map == "" {
		return nil
	}
	return k.Concurrency.HAProxy
}

// checkRate checks what limits the rate of requests.
func (k *Knob) checkRate(v *validator, where string) {
	r, at := k.Rate, where+"."+trimtab.Rate
	if r == nil {
		return
	}
	h := k.rated()
	if h == nil && !v.lost(at+".gate") {
		checkAdmin(v, orSection(v, at, "gate"), "gate", r.Gate, "write the --admin address of its trimtab gate, or haproxy with a map under concurrency")
	}
	full := *r // what was left out is set once all is checked
	full.fill()
	switch {
	case full.Min > full.Max:
		v.fail(at+".min", fmt.Sprintf("min %v is more than max %v", full.Min, full.Max), fmt.Sprintf("swap them: min: %v, max: %v", full.Max, full.Min))
	case r.Value != 0 && (r.Value < full.Min || r.Value > full.Max):
		v.fail(at+".value", fmt.Sprintf("value %v is not between min %v and max %v", r.Value, full.Min, full.Max), "write a value between min and max")
	}
	if len(r.Classes) > maxClasses {
		v.fail(at+".classes", fmt.Sprintf("%d classes, limit %d", len(r.Classes), maxClasses), "a gate has no more: remove some")
	}
	for _, name := range slices.Sorted(maps.Keys(r.Classes)) {
		if name == "" || len(name) > 64 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") != "" {
			v.fail(at+".classes", fmt.Sprintf("%q is no name of a class", clip(name)), "write 1 to 64 letters, digits, -, _ and ., as in --class of the gate")
		}
		if h != nil && !slices.Contains(h.Classes, name) {
			v.fail(at+".classes."+name, fmt.Sprintf("%q is no class of the HAProxy of concurrency", clip(name)), "write one of concurrency.haproxy.classes")
		}
		if c := r.Classes[name]; !(c >= 0.001 && c <= mostRate) {
			v.fail(at+".classes."+name, fmt.Sprintf("rate %v of a class, want 0.001 to 1000000", c), "write requests per second, or remove the class")
		}
	}
}

// maxClasses is the largest number of classes that a gate knows.
const maxClasses = 16

// limitedTwice refuses two workloads behind one limit of requests.
func limitedTwice(v *validator) {
	type limit struct{ resource, kind, root, path, class string }
	before := map[limit][]int{}  // the workloads
	maps := map[[2]string]bool{} // of HAProxies, by socket
	for i := range v.config.Workloads {
		k := &v.config.Workloads[i].Knob
		told := map[string]bool{} // by resource
		if c := k.Concurrency; c != nil && c.HAProxy.Refuses() != nil {
			at, file := fmt.Sprintf("workloads[%d].knob.concurrency.haproxy.map", i), [2]string{c.HAProxy.Socket, c.HAProxy.Map}
			switch {
			case maps[file]:
				v.fail(at, "another workload has this map", "write a map of its own for each")
			case v.config.Workloads[i].SLO.Latency <= 0:
				v.fail(at, "HAProxy can refuse only what would miss a latency, and slo.latency is not there", "write slo: {latency: 200ms, fraction: 0.95}, or remove map")
			}
			maps[file] = true
		}
		for _, a := range k.Admissions() {
			of := limit{a.Resource, a.Kind, a.Root, a.Path, a.Class}
			if a.Kind == "haproxy" {
				of.path, _, _ = strings.Cut(a.Path, "/") // all servers of the backend
			}
			for _, j := range before[of] {
				other := &v.config.Workloads[j]
				if !told[a.Resource] && overlaps(a, other.Knob.Admissions()) && (k.Host == "" || other.Knob.Host == "" || k.Host == other.Knob.Host) {
					told[a.Resource] = true
					v.fail(fmt.Sprintf("workloads[%d].knob.%s", i, a.Resource), fmt.Sprintf("requests to %q are limited there too", clip(other.Name)), "one limit has one workload: name another server, key or gate")
				}
			}
			before[of] = append(before[of], i)
		}
	}
}

// overlaps reports whether one of others is the limit a, or has a server that a has too.
func overlaps(a Admission, others []Admission) bool {
	return slices.ContainsFunc(others, func(b Admission) bool {
		if a.Resource != b.Resource || a.Kind != b.Kind || a.Root != b.Root || a.Class != b.Class {
			return false
		}
		backend, server, _ := strings.Cut(a.Path, "/")
		other, its, _ := strings.Cut(b.Path, "/")
		return a.Path == b.Path || a.Kind == "haproxy" && backend == other && (server == "*" || its == "*")
	})
}
