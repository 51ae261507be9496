package site

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/internal/kube"
)

// Objectives reads SLOs from objects of a cluster, and the workloads of its namespaces, for
// [config.LoadWith]. If an object cannot be read, or is no longer valid, Objectives keeps its last
// valid text. The zero value has read nothing. It is safe for concurrent use.
type Objectives struct {
	mu      sync.Mutex
	clients map[kube.Config]*kube.Client
	// read has the newest valid text of each object; troubles has the error of the last attempt to
	// read it.
	read     map[objectOf][]byte
	troubles map[objectOf]string

	namespaces namespaces
}

// objectOf identifies an object of a cluster.
type objectOf struct {
	kube.Config
	name string
}

// lookUpEvery is how often objects are read again: a change of an SLO takes effect within this
// time.
const lookUpEvery = 30 * time.Second

// Objects returns the reader for [config.LoadWith]; nil for nil: objects are ignored.
func (o *Objectives) Objects() config.Objects {
	if o == nil {
		return nil
	}
	return o.text
}

// text implements [config.Objects].
func (o *Objectives) text(of config.Kubernetes, object string) ([]byte, error) {
	at := objectOf{kube.Config{Kubeconfig: of.Kubeconfig, Context: of.Context}, object}
	text, err := o.ask(context.Background(), at)
	if before := o.said(at); before != nil {
		return before, nil
	}
	if text != nil {
		return text, nil // the caller finds the mistake in it and reports its position
	}
	return nil, err
}

// ask reads an object, and keeps its text if that is valid.
func (o *Objectives) ask(ctx context.Context, at objectOf) (text []byte, err error) {
	c, err := o.client(at.Config)
	if err != nil {
		return nil, err
	}
	if text, err = c.ObjectiveOf(ctx, at.name); err != nil {
		return nil, err
	}
	if _, err := config.ReadObjectives(at.name, text, config.DefaultWindow); err != nil {
		return text, fmt.Errorf("it has no meaning here: %w", err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.read == nil {
		o.read = map[objectOf][]byte{}
	}
	o.read[at] = text
	return text, nil
}

func (o *Objectives) client(of kube.Config) (*kube.Client, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if c := o.clients[of]; c != nil {
		return c, nil
	}
	c, err := kube.Open(of)
	if err != nil {
		return nil, err
	}
	if o.clients == nil {
		o.clients = map[kube.Config]*kube.Client{}
	}
	o.clients[of] = c
	return c, nil
}

// said returns the newest valid text of an object.
func (o *Objectives) said(at objectOf) []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.read[at]
}

// trouble records why an object could not be read, "" if it was, and reports whether that changed.
func (o *Objectives) trouble(at objectOf, why string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.troubles == nil {
		o.troubles = map[objectOf]string{}
	}
	news := o.troubles[at] != why
	o.troubles[at] = why
	return news
}

// objectsOf returns the objects that a configuration names.
func objectsOf(cfg *config.Config) (all []objectOf) {
	for i := range cfg.Workloads {
		if name := cfg.Workloads[i].SLO.Object; name != "" {
			all = append(all, objectOf{kube.Config{Kubeconfig: cfg.Kubernetes.Kubeconfig, Context: cfg.Kubernetes.Context}, name})
		}
	}
	return all
}

// followObjectives polls the objects and namespaces of the configuration in force until ctx ends, and
// reloads the configuration when one has changed.
func (s *Site) followObjectives(ctx context.Context, every time.Duration) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(every):
		}
		cfg := s.Config()
		members, proposed := s.membersChanged(ctx, cfg), s.propose(cfg, time.Now())
		if s.options.Objectives.changed(ctx, cfg, s.process.Logger) || members || proposed {
			_ = s.Reload(ctx) // Reload logs why the old configuration stays
		}
	}
}

// changed reads all objects of a configuration again, and reports whether one has changed.
func (o *Objectives) changed(ctx context.Context, cfg *config.Config, log *slog.Logger) (changed bool) {
	for _, at := range objectsOf(cfg) {
		before := o.said(at)
		now, err := o.ask(ctx, at)
		o.heard(ctx, at, err, log)
		changed = changed || err == nil && !bytes.Equal(before, now)
	}
	return changed
}

// lookedUp returns an error if a configuration cannot be used since an objective was not looked up.
func lookedUp(cfg *config.Config) error {
	for i := range cfg.Workloads {
		if w := &cfg.Workloads[i]; w.SLO.Object != "" && w.SLO.Target() == 0 {
			return trimtab.Invalidf("%s: its SLO %s was not looked up", w.Name, w.SLO.Object)
		}
	}
	return nil
}
