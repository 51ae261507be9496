package site

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/kinds"
	"github.com/trimtab/trimtab/actuator/kubernetes"
	"github.com/trimtab/trimtab/agent/knobs"
	names "github.com/trimtab/trimtab/collector/kubernetes"
	"github.com/trimtab/trimtab/config"
	kubeexport "github.com/trimtab/trimtab/exporters/kubernetes"
	"github.com/trimtab/trimtab/internal/kube"
	"github.com/trimtab/trimtab/planner"
	"github.com/trimtab/trimtab/planner/behavior"
	"github.com/trimtab/trimtab/planner/replicas"
)

// This file connects the Kubernetes cluster whose workloads this process changes. The actuator's
// part watches it from its start to its end.

// watchedCluster is the Kubernetes cluster that a part watches; nil: none does yet.
type watchedCluster struct {
	atomic.Pointer[kube.Cluster]
	// usage is what its containers use of memory; nil: that is not read.
	usage atomic.Pointer[names.Usage]
}

// of returns the cluster of a configuration, usable once it is watched.
func (w *watchedCluster) of(cfg *config.Config) kubernetes.Cluster {
	return kubernetes.Cluster{
		Config: kube.Config{Kubeconfig: cfg.Kubernetes.Kubeconfig, Context: cfg.Kubernetes.Context},
		Watched: func() (*kube.Cluster, error) {
			if c := w.Load(); c != nil {
				return c, nil
			}
			return kinds.NoCluster()
		},
		Rules:      rulesOfCluster(cfg),
		WorkingSet: w.workingSet,
	}
}

// rulesOfCluster returns the configured options for workloads of the cluster, without their bounds.
func rulesOfCluster(cfg *config.Config) func(kube.Ref) kubernetes.Options {
	own := optionsOfCluster(cfg)
	return func(r kube.Ref) kubernetes.Options {
		if o, ok := own[r]; ok {
			return o
		}
		return own[kube.Ref{}]
	}
}

// optionsOfCluster returns the options of each workload of the cluster, and with an empty name those
// of all others.
func optionsOfCluster(cfg *config.Config) map[kube.Ref]kubernetes.Options {
	all := kubernetes.Options{StartValues: cfg.Exporters.Kubernetes.StartValues != "", RestoreBaseline: cfg.Kubernetes.Restore == "baseline", DeferFor: cfg.Kubernetes.DeferTimeout, TakeOver: cfg.Kubernetes.TakeOver}
	own := map[kube.Ref]kubernetes.Options{{}: all}
	for i := range cfg.Workloads {
		k := &cfg.Workloads[i].Knob
		t := k.Kubernetes
		if t == nil {
			continue
		}
		o := all
		o.AddLimits, o.Follow = t.AddLimits, t.Requests == config.RequestsFollow
		o.Weighs = k.CPU != nil && k.CPU.Cap == config.CapNever
		if r := k.Replicas; r != nil {
			o.AllowZero, o.Choose = r.AllowZero, r.DeletionCost
		}
		kind, name := t.Workload()
		own[kube.Ref{Namespace: t.Namespace, Kind: kind, Name: name}] = o
	}
	return own
}

// nameSenders adds to spans the workload of the cluster that sent them, if they name its pod, its
// address, or nothing but a service, so that match.kubernetes finds them.
func (w *watchedCluster) nameSenders(attrs []trimtab.Attr) (more []trimtab.Attr, settled bool) {
	c := w.Load()
	if c == nil {
		return nil, false
	}
	r, err := names.New(c).OfSpan(attrs)
	if err != nil {
		return nil, false
	}
	for _, a := range []trimtab.Attr{{Key: "k8s.namespace.name", Value: r.Namespace}, {Key: "k8s." + strings.ToLower(r.Kind) + ".name", Value: r.Name}} {
		if !slices.Contains(attrs, a) {
			more = append(more, a)
		}
	}
	return more, true
}

// refsOf maps the cluster's objects to the names of workloads.
func refsOf(cfg *config.Config) map[kube.Ref]string {
	all := map[kube.Ref]string{}
	for i := range cfg.Workloads {
		w := &cfg.Workloads[i]
		for _, t := range []*config.KubernetesTarget{w.Match.Kubernetes, w.Knob.Kubernetes} {
			if t != nil {
				kind, name := t.Workload()
				all[kube.Ref{Namespace: t.Namespace, Kind: kind, Name: name}] = w.Name
			}
		}
	}
	return all
}

// podIn returns the workload of a pod; "" if it is not known.
func (w *watchedCluster) podIn(workloads map[kube.Ref]string) func(namespace, pod string) string {
	return func(namespace, pod string) string {
		c := w.Load()
		if c == nil {
			return ""
		}
		r, err := names.New(c).OfSpan([]trimtab.Attr{{Key: "k8s.namespace.name", Value: namespace}, {Key: "k8s.pod.name", Value: pod}})
		if err != nil {
			return ""
		}
		return workloads[r]
	}
}

// hasCluster reports whether some knob belongs to a cluster.
func hasCluster(all []knobs.Declared) bool {
	return slices.ContainsFunc(all, func(d knobs.Declared) bool { return kinds.OfCluster(d.Kind) })
}

// countOf converts the file's section on the number of a workload's pods for the planner.
func countOf(r *config.Replicas) *planner.Count {
	if r == nil {
		return nil
	}
	c := &planner.Count{Min: r.Min, Max: r.Max, Spare: r.Spare, Startup: r.Startup, AllowZero: r.AllowZero, Cooldown: r.Cooldown, Chosen: r.DeletionCost}
	c.Behavior = BehaviorOf(r.Behavior)
	if f := r.Fallback; f != nil {
		c.Fallback = &replicas.Fallback{FailureThreshold: f.FailureThreshold, Replicas: f.Replicas, Behavior: f.Behavior}
	}
	return c
}

// BehaviorOf converts a behavior block of the configuration for the planner.
func BehaviorOf(b *config.Behavior) *behavior.Behavior {
	if b == nil {
		return nil
	}
	return &behavior.Behavior{Up: rulesOf(b.ScaleUp), Down: rulesOf(b.ScaleDown)}
}

func rulesOf(r *config.ScalingRules) *behavior.Rules {
	if r == nil {
		return nil
	}
	out := &behavior.Rules{Window: r.Window, Select: r.Select, Tolerance: (*float64)(r.Tolerance)}
	for _, p := range r.Policies {
		out.Policies = append(out.Policies, behavior.Policy{Type: p.Type, Value: p.Value, PeriodSeconds: p.PeriodSeconds})
	}
	return out
}

// firstLists is how long a start waits for the objects of the cluster. A slow or missing API server
// delays only the part that watches it.
const firstLists = 5 * time.Second

// watch starts to watch the cluster, and returns the function that ends it.
func (w *watchedCluster) watch(ctx context.Context, cfg *config.Config, of kubernetes.Cluster, log *slog.Logger) (stop func() error, err error) {
	client, err := kube.Open(of.Config)
	if err != nil {
		return nil, err
	}
	// The watch ends with its part, not with the start.
	c := kube.Watch(context.WithoutCancel(ctx), client, cfg.Watched(), log, cfg.Kinds()...)
	w.Store(c)
	wait, cancel := context.WithTimeout(ctx, firstLists)
	defer cancel()
	if err := c.Ready(wait); err != nil {
		log.Warn("the Kubernetes cluster does not answer yet", "server", client.Server(), "err", err)
	}
	for _, missing := range c.Missing() {
		log.Warn("the Kubernetes cluster does not tell everything", "server", client.Server(), "err", missing)
	}
	return func() error {
		w.CompareAndSwap(c, nil)
		return c.Close()
	}, nil
}

// ofCluster completes the configuration of an actuator that controls the knobs of a cluster.
func ofCluster(c *actuator.Config, cfg *config.Config, of kubernetes.Cluster) {
	c.MaxKnobs = actuator.MaxClusterKnobs
	if cfg.Kubernetes.Journal != "" {
		c.OpenJournal, c.Watchdog = clusterJournal(cfg, of), nil
	}
}

// clusterJournal opens the journal of the pool as a ConfigMap.
func clusterJournal(cfg *config.Config, of kubernetes.Cluster) func(context.Context) (actuator.Journal, error) {
	namespace, pool := cfg.Kubernetes.Journal, cfg.Pool.Name
	return func(ctx context.Context) (actuator.Journal, error) {
		c, err := of.Watched()
		if err != nil {
			return nil, err
		}
		j, err := openJournal(ctx, c.Client, namespace, pool)
		if err != nil {
			return nil, err
		}
		return j, nil
	}
}

// journalTries is how often opening a journal is tried; journalPause is the first pause. An API
// server that fails some requests is no reason to end.
const (
	journalTries = 6
	journalPause = 500 * time.Millisecond
)

func openJournal(ctx context.Context, c *kube.Client, namespace, pool string) (j *kubernetes.Journal, err error) {
	for try := range journalTries {
		j, err = kubernetes.OpenJournal(ctx, c, namespace, pool)
		if err == nil || errors.Is(err, trimtab.ErrRefused) || errors.Is(err, os.ErrNotExist) {
			return j, err
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(err, ctx.Err())
		case <-time.After(journalPause << try):
		}
	}
	return nil, err
}

// RestoreCluster takes over the journal of a configuration's cluster, so that a trimtab process
// that still uses it stops writing, and restores every baseline in it.
func RestoreCluster(ctx context.Context, cfg *config.Config) (actuator.Report, error) {
	client, err := kube.Open(kube.Config{Kubeconfig: cfg.Kubernetes.Kubeconfig, Context: cfg.Kubernetes.Context})
	if err != nil {
		return actuator.Report{}, err
	}
	j, err := kubernetes.OpenJournal(ctx, client, cfg.Kubernetes.Journal, cfg.Pool.Name)
	if err != nil {
		return actuator.Report{}, err
	}
	report, err := actuator.RestoreJournal(ctx, j, kinds.Reopen)
	if namespace := cfg.Exporters.Kubernetes.StartValues; namespace != "" {
		if cleared := kubeexport.ClearStartValues(ctx, client, namespace, cfg.Pool.Name); !errors.Is(cleared, os.ErrNotExist) {
			err = errors.Join(err, cleared)
		}
	}
	return report, err
}

// with returns a start function that first starts to watch the cluster, and what its containers use.
func (s *stages) withCluster(cfg *config.Config, of kubernetes.Cluster, log *slog.Logger, start func(context.Context) (func() error, error)) func(context.Context) (func() error, error) {
	return func(ctx context.Context) (func() error, error) {
		unwatch, err := s.cluster.watch(ctx, cfg, of, log)
		if err != nil {
			return nil, err
		}
		unread, err := s.readPods(ctx, cfg)
		if err != nil {
			return nil, errors.Join(err, unwatch())
		}
		watch := unwatch
		unwatch = func() error { return errors.Join(unread(), watch()) }
		stop, err := start(ctx)
		if err != nil {
			return nil, errors.Join(err, unwatch())
		}
		return func() error { return errors.Join(stop(), unwatch()) }, nil
	}
}
