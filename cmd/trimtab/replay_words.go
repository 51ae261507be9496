package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/internal/site"
	"github.com/trimtab/trimtab/planner/baseline/autoscale"
	"github.com/trimtab/trimtab/sim/kubernetes"
)

// podWords are the autoscalers of manifests.
type podWords struct {
	hpa, keda, vpa []config.Autoscaler
	notes          []string
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
	w.notes = []string{}
	for _, a := range slices.Concat(w.hpa, w.keda, w.vpa) {
		for _, text := range a.Notes {
			w.notes = append(w.notes, a.String()+": "+text)
		}
	}
	return &w, nil
}

// of is the object that is the workload's: the one that targets its name, or the only one.
func of(all []config.Autoscaler, workload string) *config.Autoscaler {
	for i := range all {
		if all[i].Target == workload {
			return &all[i]
		}
	}
	if len(all) == 1 {
		return &all[0]
	}
	return nil
}

// apply gives a workload its words, and says which they are.
func (w *podWords) apply(r *kubernetes.Recorded) playedWith {
	r.HPA, r.KEDA, r.VPA = kubernetes.DefaultHPA(), kubernetes.DefaultKEDA(r.Request, r.Cost), kubernetes.DefaultVPA()
	out := playedWith{Workload: r.Name, Pods: r.Replicas, Cores: r.Request, Cost: r.Cost, Startup: r.Startup}
	hpa, keda, vpa := "by default", "by default", "by default"
	if a := of(w.hpa, r.Name); a != nil {
		hpa, r.HPA = a.String(), hpaWords(a)
	}
	if a := of(w.keda, r.Name); a != nil {
		keda = a.String()
		r.KEDA = kubernetes.KEDAWords{HPAWords: hpaWords(a), Idle: a.Idle, Cooldown: a.Cooldown, PollingInterval: a.Polling}
	}
	if a := of(w.vpa, r.Name); a != nil {
		vpa, r.VPA = a.String(), vpaWords(a)
	}
	out.HPA, out.KEDA, out.VPA = hpa+": "+said(&r.HPA), keda+": "+said(&r.KEDA.HPAWords), vpa+": "+saidVPA(&r.VPA)
	return out
}

func hpaWords(a *config.Autoscaler) kubernetes.HPAWords {
	out := kubernetes.HPAWords{Min: a.Min, Max: a.Max, Behavior: site.BehaviorOf(a.Behavior)}
	for _, m := range a.Metrics {
		t := kubernetes.Target{Load: !m.CPU, Type: m.Type, Value: m.Value, Activation: m.Activation}
		if m.External && m.Type == "AverageValue" {
			t.Type = autoscale.External
		}
		out.Targets = append(out.Targets, t)
	}
	return out
}

func vpaWords(a *config.Autoscaler) kubernetes.VPAWords {
	out := kubernetes.VPAWords{Min: a.MinAllowed, Max: a.MaxAllowed, MinReplicas: a.MinReplicas}
	if out.MinReplicas == 0 {
		out.MinReplicas = 2
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
