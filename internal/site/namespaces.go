package site

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/console/view"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/internal/kube"
)

// This file follows the namespaces whose workloads the file does not name, and proposes their SLOs.

// namespaces has what is known of them.
type namespaces struct {
	// members are those of the last answer.
	members  map[objectOf][]config.Member
	proposed map[string]proposal
}

// proposal is an SLO that was drafted for a workload.
type proposal struct {
	Latency time.Duration `json:"latency_ns"`
	// Seen is how long the workload had been observed.
	Seen time.Duration `json:"seen_ns"`
}

const (
	// proposeAfter is how long a workload is observed before its first proposal. Another one may
	// follow whenever it was observed for twice as long as before, so that they become rare.
	proposeAfter = 2 * time.Minute
	// proposalsFile is in the storage directory.
	proposalsFile = "proposals.json"
	maxProposals  = 8 << 20
)

// Members returns the reader of namespaces for [config.LoadWith]; nil for nil.
func (o *Objectives) Members() config.Members {
	if o == nil {
		return nil
	}
	return o.list
}

// list implements [config.Members]. While the cluster does not answer, what it said before holds.
func (o *Objectives) list(of config.Kubernetes, in config.Namespace) ([]config.Member, error) {
	at := namespaceOf(of, in)
	c, err := o.client(at.Config)
	var found []*kube.Workload
	if err == nil {
		found, err = c.Workloads(context.Background(), in.Name, in.Selector)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if err == nil {
		if o.namespaces.members == nil {
			o.namespaces.members = map[objectOf][]config.Member{}
		}
		o.namespaces.members[at] = membersOf(found)
	}
	all, known := o.namespaces.members[at]
	if !known {
		return nil, err
	}
	all = slices.Clone(all)
	for i := range all {
		if p := o.namespaces.proposed[in.NameOf(all[i])]; p.Latency > 0 { // the file that keeps it may hold anything
			all[i].SLO = config.SLO{Latency: p.Latency, Fraction: 0.95}
		}
	}
	return all, nil
}

func namespaceOf(of config.Kubernetes, in config.Namespace) objectOf {
	return objectOf{kube.Config{Kubeconfig: of.Kubeconfig, Context: of.Context}, fmt.Sprint(in.Name, in.Selector)}
}

// membersOf returns workloads in order. Of several containers the first is meant, as by kubectl.
func membersOf(all []*kube.Workload) []config.Member {
	out := make([]config.Member, 0, len(all))
	for _, w := range all {
		m := config.Member{Kind: w.Kind, Name: w.Name}
		if containers := w.Spec.Template.Spec.Containers; len(containers) > 1 {
			m.Container = containers[0].Name
		}
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b config.Member) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name)) })
	return out
}

// membersChanged reports whether namespaces have other workloads than at the last load. It asks the
// watches, if there are any, and not the API server.
func (s *Site) membersChanged(ctx context.Context, cfg *config.Config) (changed bool) {
	o := s.options.Objectives
	for _, in := range cfg.Namespaces {
		at := namespaceOf(cfg.Kubernetes, in)
		found, err := s.workloadsIn(ctx, at.Config, in)
		o.heard(ctx, at, err, s.process.Logger)
		o.mu.Lock()
		changed = changed || err == nil && !slices.Equal(membersOf(found), o.namespaces.members[at])
		o.mu.Unlock()
	}
	return changed
}

func (s *Site) workloadsIn(ctx context.Context, of kube.Config, in config.Namespace) ([]*kube.Workload, error) {
	if c := s.cluster.Load(); c != nil {
		return c.Workloads(in.Name, in.Selector)
	}
	c, err := s.options.Objectives.client(of)
	if err != nil {
		return nil, err
	}
	return c.Workloads(ctx, in.Name, in.Selector)
}

// propose drafts the SLOs of workloads that the file does not name, and reports whether one changed.
func (s *Site) propose(cfg *config.Config, now time.Time) (changed bool) {
	if s.view == nil || len(cfg.Namespaces) == 0 {
		return false
	}
	open := map[string]bool{}
	for i := range cfg.Workloads {
		open[cfg.Workloads[i].Name] = cfg.Workloads[i].SLO.Proposed
	}
	o := s.options.Objectives
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.namespaces.proposed == nil {
		o.namespaces.proposed = map[string]proposal{}
	}
	estimates, _ := s.view.Newest(now)
	learnt := false
	for _, e := range estimates {
		latency, ok := view.Proposed(e.Observed)
		before := o.namespaces.proposed[e.Workload]
		if !ok || !open[e.Workload] {
			continue
		}
		if seen := e.Observed.To.Sub(e.Observed.From); seen >= max(proposeAfter, 2*before.Seen) {
			o.namespaces.proposed[e.Workload] = proposal{latency, seen}
			learnt, changed = true, changed || latency != before.Latency
		}
	}
	if learnt {
		b, err := json.Marshal(o.namespaces.proposed)
		if err == nil {
			err = hostfs.ReplaceFile(filepath.Join(cfg.Storage.Path, proposalsFile), b)
		}
		if err != nil {
			s.process.Logger.Warn("proposed SLOs cannot be kept: they begin anew after a restart", "err", err)
		}
	}
	return changed
}

// resume reads the proposals of before a restart, and loads the configuration again if there are any.
func (o *Options) resume(cfg *config.Config) (*config.Config, error) {
	if o.Objectives == nil || o.Load == nil || len(cfg.Namespaces) == 0 {
		return cfg, nil
	}
	b, err := hostfs.ReadFile(filepath.Join(cfg.Storage.Path, proposalsFile), maxProposals)
	if err == nil {
		o.Objectives.mu.Lock()
		err = json.Unmarshal(b, &o.Objectives.namespaces.proposed)
		o.Objectives.mu.Unlock()
	}
	switch {
	case errors.Is(err, os.ErrNotExist):
		return cfg, nil
	case err != nil:
		o.Logger.Warn("proposed SLOs cannot be read: they begin anew", "err", err)
		return cfg, nil
	}
	return o.Load()
}

// heard logs why something of the cluster cannot be read, once, and once when it can be again.
func (o *Objectives) heard(ctx context.Context, at objectOf, err error, log *slog.Logger) {
	why := ""
	if err != nil {
		why = err.Error()
	}
	if ctx.Err() != nil || !o.trouble(at, why) {
		return
	}
	if err != nil {
		log.Warn("the cluster cannot be read: what it said before holds", "object", at.name, "err", err)
	} else {
		log.Info("the cluster can be read", "object", at.name)
	}
}
