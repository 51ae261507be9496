package config

import (
	"fmt"
	"slices"
	"strings"
)

// vpa reads what a VPA says of the CPU of the workload's own container, by the rules of its
// admission controller (1.8).
func (x item) vpa(a *Autoscaler) {
	spec := x.get("spec")
	update := spec.get("updatePolicy")
	mode := update.get("updateMode")
	switch a.UpdateMode = mode.word(); a.UpdateMode {
	case "Off", "Recreate", "Auto", "InPlaceOrRecreate":
	case "Initial":
		a.Notes = append(a.Notes, "updateMode Initial sets the size of new pods alone, and the number of pods stays here: none changes")
	case "InPlace":
		a.Notes = append(a.Notes, "updateMode InPlace is refused unless the VPA's feature gate InPlace is on, which it is not by default")
	case "":
		if update.has() {
			mode.fail("updatePolicy has no updateMode", "write updateMode: Recreate, or leave updatePolicy out")
		}
	default:
		mode.fail(fmt.Sprintf("unknown updateMode %q", clip(a.UpdateMode)), `write "Off", Initial, Recreate, InPlaceOrRecreate or InPlace`)
	}
	update.get("minReplicas").whole(&a.MinReplicas, 1, 10_000)
	if update.get("evictionRequirements").has() {
		a.Notes = append(a.Notes, "its evictionRequirements are not played: pods are evicted in either direction")
	}
	if of := spec.get("recommenders").items(); len(of) > 0 {
		a.Notes = append(a.Notes, fmt.Sprintf("its recommender %s is played as the VPA's own", clip(of[0].get("name").text())))
	}
	policies := spec.get("resourcePolicy", "containerPolicies").items()
	for _, p := range policies {
		p.containerPolicy()
	}
	p, ok := ownPolicy(a, policies)
	if !ok {
		return
	}
	for key, to := range map[string]*float64{"minAllowed": &a.MinAllowed, "maxAllowed": &a.MaxAllowed} {
		if v := p.get(key, "cpu"); v.has() {
			*to, _ = v.quantity()
		}
	}
	if p.get("mode").text() == "Off" {
		a.UpdateMode = "Off"
	}
	if of := p.get("controlledResources"); of.has() {
		a.LeavesCPU = !slices.ContainsFunc(of.items(), func(r item) bool { return r.text() == "cpu" })
	}
	if p.get("controlledValues").text() == "RequestsOnly" {
		a.Notes = append(a.Notes, "controlledValues RequestsOnly keeps limits: it is played with pods whose limit is their request")
	}
}

// containerPolicy reports what the admission controller refuses of one.
func (x item) containerPolicy() {
	if x.get("containerName").text() == "" {
		x.get("containerName").fail("a container policy has no containerName", `write the name of the container, or "*" for all others`)
	}
	if mode := x.get("mode"); mode.has() {
		if word := mode.word(); word != "Auto" && word != "Off" {
			mode.fail(fmt.Sprintf("unknown mode %q", clip(word)), `write Auto or "Off"`)
		}
	}
	for _, r := range x.get("controlledResources").items() {
		if r.text() != "cpu" && r.text() != "memory" {
			r.fail(fmt.Sprintf("controlledResources has %q", clip(r.text())), "write cpu and memory, or one of them")
		}
	}
	least, most := x.get("minAllowed", "cpu"), x.get("maxAllowed", "cpu")
	if !least.has() || !most.has() {
		return
	}
	from, ok := least.quantity()
	to, also := most.quantity()
	if ok && also && to < from {
		most.fail(fmt.Sprintf("maxAllowed is %s, less than minAllowed %s", clip(most.text()), clip(least.text())), "swap them")
	}
}

// ownPolicy is the policy of the workload's own container: the one of its name, else the one
// that names another container than a sidecar and does not switch it off, else "*". A
// container without a policy has the default one.
func ownPolicy(a *Autoscaler, policies []item) (own item, ok bool) {
	var rest item
	var named []item
	off := ""
	for _, p := range policies {
		switch name := p.get("containerName").text(); {
		case name == a.Target:
			return p, true
		case name == "*":
			rest, ok = p, true
		case sidecar(name):
		case p.get("mode").text() == "Off":
			off = name
		default:
			named = append(named, p)
		}
	}
	if off != "" {
		a.Notes = append(a.Notes, fmt.Sprintf("container %s, which it leaves alone, is taken for one beside the workload's own: if it is that one, its pods keep their size", clip(off)))
	}
	if len(named) == 0 {
		return rest, ok
	}
	a.Notes = append(a.Notes, fmt.Sprintf("its policy of container %s is taken for the workload's own", clip(named[0].get("containerName").text())))
	return named[0], true
}

// sidecar reports whether a container of that name is a sidecar of the one that serves.
func sidecar(name string) bool {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r == '-' || r == '_' || r == '.' })
	return slices.ContainsFunc(words, func(w string) bool {
		return slices.Contains([]string{"proxy", "sidecar", "envoy", "istio", "linkerd", "exporter", "agent", "fluentd", "fluentbit", "fluent", "promtail", "collector", "otel", "daprd", "init", "reloader", "vault"}, w)
	})
}
