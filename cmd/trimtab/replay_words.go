package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/internal/hint"
	"github.com/trimtab/trimtab/internal/site"
	"github.com/trimtab/trimtab/sim/autoscale"
	"github.com/trimtab/trimtab/sim/kubernetes"
)

// podWords are the autoscalers of manifests.
type podWords struct {
	hpa, keda, vpa []config.Autoscaler
	notes          []string
	found          map[string]bool // flags of which some object fits some workload
	errs           []*unfitting
}

// words reads all manifests.
func (c *replayPods) words() (*podWords, error) {
	var w podWords
	var errs [3]error
	w.hpa, errs[0] = readWords(c.HPA, config.KindHPA)
	w.keda, errs[1] = readWords(c.KEDA, config.KindScaledObject)
	w.vpa, errs[2] = readWords(c.VPA, config.KindVPA)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	w.notes, w.found = []string{}, map[string]bool{}
	for _, a := range slices.Concat(w.hpa, w.keda, w.vpa) {
		for _, text := range a.Notes {
			w.notes = append(w.notes, a.String()+": "+text)
		}
	}
	return &w, nil
}

// errTwice reports that two objects scale one workload.
var errTwice = errors.New("both scale")

// scaled identifies the object that an autoscaler scales.
type scaled struct{ namespace, name string }

// of returns the object in a manifest that scales the workload: the one that targets it, or the
// only one. If there are several and none fits, the error says why.
func of(all []config.Autoscaler, workload string, known []scaled) (*config.Autoscaler, error) {
	var found []*config.Autoscaler
	for _, s := range known { // the most reliable knowledge comes first
		for i := range all {
			if a := &all[i]; a.Target == s.name && (s.namespace == "" || a.Namespace == "" || a.Namespace == s.namespace) {
				found = append(found, a)
			}
		}
		if len(found) > 0 {
			break
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return nil, fmt.Errorf("%s and %s %w %.100q", found[0], found[1], errTwice, workload)
	case len(all) == 1:
		return &all[0], nil
	case len(all) > 1:
		var names []string
		for i := range all[:min(len(all), 5)] {
			names = append(names, all[i].Target)
		}
		more := ""
		if n := len(all) - len(names); n > 0 {
			more = fmt.Sprintf(" and %d more", n)
		}
		return nil, fmt.Errorf("none of %d %ss scales %.100q: they scale %s%s", len(all), all[0].Kind, workload, strings.Join(names, ", "), more)
	}
	return nil, nil
}

// apply gives a workload its words, and says which they are.
func (w *podWords) apply(r *kubernetes.Recorded, known []scaled) playedWith {
	r.HPA, r.KEDA, r.VPA = kubernetes.DefaultHPA(), kubernetes.DefaultKEDA(r.Request, r.Cost), kubernetes.DefaultVPA()
	out := playedWith{Workload: r.Name, Pods: r.Replicas, Cores: r.Request, Cost: r.Cost, Startup: r.Startup}
	hpa, keda, vpa := "by default", "by default", "by default"
	known = append(known, scaled{name: r.Name})
	one := func(flag string, all []config.Autoscaler) *config.Autoscaler {
		a, err := of(all, r.Name, known)
		if err != nil {
			w.errs = append(w.errs, &unfitting{err, flag, errors.Is(err, errTwice)})
		}
		w.found[flag] = w.found[flag] || a != nil
		return a
	}
	if a := one("hpa", w.hpa); a != nil {
		hpa, r.HPA = a.String(), hpaWords(a)
	}
	if a := one("keda", w.keda); a != nil {
		keda = a.String()
		r.KEDA = kubernetes.KEDAWords{HPAWords: hpaWords(a), Idle: a.Idle, Cooldown: a.Cooldown, PollingInterval: a.Polling}
	}
	if a := one("vpa", w.vpa); a != nil {
		vpa, r.VPA = a.String(), vpaWords(a)
	}
	out.HPA, out.KEDA, out.VPA = hpa+": "+said(&r.HPA), keda+": "+said(&r.KEDA.HPAWords), vpa+": "+saidVPA(&r.VPA)
	return out
}

// fitting gives each workload its objects. It is an error if objects fit no workload, or two fit
// one; a workload without one beside others that have one is replayed by default, with a note.
func (w *podWords) fitting(all []kubernetes.Recorded, scales map[string][]scaled) (out []playedWith, err error) {
	for i := range all {
		out = append(out, w.apply(&all[i], scales[all[i].Name]))
	}
	for _, e := range w.errs {
		if w.found[e.flag] && !e.twice {
			w.notes = append(w.notes, e.Error()+": it is played by default")
			continue
		}
		return nil, hint.Add(fmt.Errorf("replay: --%s: %w", e.flag, e), "leave the object that is to be compared alone in the file, or give each the name of its workload as target")
	}
	return out, nil
}

// unfitting says why a workload has no object of a manifest with several.
type unfitting struct {
	error
	flag  string
	twice bool
}

func hpaWords(a *config.Autoscaler) kubernetes.HPAWords {
	out := kubernetes.HPAWords{Min: a.Min, Max: a.Max, Behavior: site.BehaviorOf(a.Behavior)}
	for _, m := range a.Metrics {
		t := kubernetes.Target{Load: !m.CPU, Type: m.Type, Value: m.Value, Activation: m.Activation}
		if m.Cron != nil {
			t.Within = m.Cron.Within
		}
		if m.External && m.Type == "AverageValue" {
			t.Type = autoscale.External
		}
		out.Targets = append(out.Targets, t)
	}
	return out
}

func vpaWords(a *config.Autoscaler) kubernetes.VPAWords {
	out := kubernetes.VPAWords{Min: a.MinAllowed, Max: a.MaxAllowed, MinReplicas: a.MinReplicas, LeavesCPU: a.LeavesCPU}
	if out.MinReplicas == 0 {
		out.MinReplicas = 2
	}
	if a.LeavesCPU {
		return out
	}
	switch a.UpdateMode {
	case "", "Auto", "Recreate":
		out.Recreate = true
	case "InPlace", "InPlaceOrRecreate":
		out.InPlace = true
	}
	return out
}

// said puts an HPA into words.
func said(h *kubernetes.HPAWords) string {
	var of []string
	for _, t := range h.Targets {
		if t.Within != nil {
			of = append(of, fmt.Sprintf("%.4g pods in its hours", t.Value))
			continue
		}
		what, unit := "CPU", " cores a pod"
		if t.Load {
			what, unit = "load", " requests/s a pod"
		}
		switch t.Type {
		case autoscale.Utilization:
			unit = "% of requests"
		case autoscale.Value:
			unit = strings.TrimSuffix(unit, " a pod") + " in all"
		}
		of = append(of, fmt.Sprintf("%s at %.4g%s", what, t.Value, unit))
	}
	text := fmt.Sprintf("%s, %d to %d pods", strings.Join(of, ", "), h.Min, h.Max)
	if h.Behavior != nil {
		text += ", with its behavior"
	}
	return text
}

func saidVPA(v *kubernetes.VPAWords) string {
	text := "advises only"
	switch {
	case v.LeavesCPU:
		return "controls memory alone: sizes and number of pods stay"
	case v.InPlace:
		text = "resizes in place"
	case v.Recreate:
		text = "evicts"
	}
	if v.Min > 0 || v.Max > 0 {
		text += fmt.Sprintf(", %.4g to %.4g cores", v.Min, v.Max)
	}
	return text + ", the number of pods stays"
}
