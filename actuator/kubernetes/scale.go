package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/internal/kube"
)

// Scale is the number of pods of a workload.
type Scale struct {
	config kube.Config
	ref    kube.Ref
	from   facts
	rules  Options
	now    func() time.Time
	// uid identifies the workload: one that is created again with the same name has another.
	uid string
	// found is the number at the last read, for Undo; generation is the workload's generation at
	// that time.
	found, generation int64
	setBy             string
	// wrote is the last write, with the workload's version at that time, until the watch has seen
	// it.
	wrote   *written
	refusal refusal
	leaving leaving
}

type written struct {
	replicas, before int64
	version          string
	generation       int64
	at               time.Time
}

// Traits returns the optional abilities of this knob.
func (s *Scale) Traits() actuator.Traits {
	return actuator.Traits{
		Pace:     s.from.pace() / 2, // each write also reads the workload
		Location: s.Location, Effective: s.Effective, Hopeless: s.Hopeless, Version: s.Version,
		Status: s.Status, Floor: s.Floor, Restore: s.Restore, SetBy: s.SetBy, Leave: s.Leave,
	}
}

// scaleKind is the format name in what Undo returns.
const scaleKind = "kubernetes-scale/1"

type scaleUndo struct {
	kube.Config
	Workload kube.Ref `json:"workload"`
	UID      string   `json:"uid"`
	// Replicas is the number before the first write; Lower allows a restore to lower the number to
	// it.
	Replicas int64 `json:"replicas"`
	Lower    bool  `json:"lower,omitempty"`
	// Chose says that pods may have an annotation of trimtab's.
	Chose bool `json:"chose,omitempty"`
}

func openScale(config kube.Config, ref kube.Ref, uid string, from facts, rules Options) *Scale {
	return &Scale{config: config, ref: ref, uid: uid, from: from, rules: rules, now: time.Now, leaving: leaving{marked: rules.Choose}}
}

// Undo describes the knob, with the number found.
func (s *Scale) Undo() []byte {
	return actuator.UndoOf(scaleKind, scaleUndo{s.config, s.ref, s.uid, s.found, s.rules.RestoreBaseline, s.rules.Choose})
}

// String names the workload.
func (s *Scale) String() string { return "replicas of " + s.ref.String() }

// Resource returns "replicas".
func (s *Scale) Resource() string { return trimtab.Replicas }

// Close does nothing: the knob has nothing open.
func (s *Scale) Close() error { return nil }

// Location identifies the workload for other processes of this host.
func (s *Scale) Location() (string, error) {
	return path.Join("/kubernetes", s.ref.Namespace, s.ref.Kind, s.ref.Name, s.uid), nil
}

// workload reads the workload. The error is os.ErrNotExist if it was created again.
func (s *Scale) workload(ctx context.Context) (*kube.Workload, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("read %s: %w", s, err)
	}
	w, err := s.from.workload(ctx, s.ref)
	if err != nil {
		return nil, err
	}
	if w.UID != s.uid {
		return nil, fmt.Errorf("find %s: it was replaced by another of its name: %w", s.ref, os.ErrNotExist)
	}
	return w, nil
}

// Probe returns an error if the workload does not exist.
func (s *Scale) Probe(ctx context.Context) error {
	_, err := s.workload(ctx)
	return err
}

// Read returns the requested number of pods.
func (s *Scale) Read(ctx context.Context) (trimtab.Amount, error) {
	w, err := s.workload(ctx)
	if err != nil {
		return trimtab.Amount{}, err
	}
	s.found, s.generation, s.setBy = s.replicas(w), w.Generation, w.SetBy(trimtab.Replicas)
	if s.behind(w) {
		s.generation = s.wrote.generation
	}
	return trimtab.Units(float64(s.found)), nil
}

// SetBy returns who set the number last, as managedFields had it at the last read.
func (s *Scale) SetBy() string { return s.setBy }

// Version returns the generation of the workload at the last read.
func (s *Scale) Version() string {
	if s.generation == 0 {
		return ""
	}
	return fmt.Sprint(s.generation)
}

// behind reports whether the watch has not seen the last write yet.
func (s *Scale) behind(w *kube.Workload) bool {
	return s.wrote != nil && kube.Before(w.ResourceVersion, s.wrote.version)
}

// replicas returns the requested number: the watch may be behind the last write.
func (s *Scale) replicas(w *kube.Workload) int64 {
	if s.behind(w) {
		return s.wrote.replicas
	}
	return w.Replicas()
}

// Effective returns how many of the requested pods exist: available ones while the number grows,
// all that are left while it falls.
func (s *Scale) Effective(ctx context.Context) (trimtab.Amount, error) {
	w, err := s.workload(ctx)
	if err != nil {
		return trimtab.Amount{}, err
	}
	asked, there := s.replicas(w), w.Status.Replicas
	behind := int64(w.Status.ObservedGeneration) < w.Generation || s.behind(w)
	switch {
	case behind && s.wrote != nil:
		return trimtab.Units(float64(s.wrote.before)), nil
	case there > asked:
		return trimtab.Units(float64(there)), nil
	case s.wrote != nil && s.wrote.before < asked && w.Status.AvailableReplicas < asked:
		return trimtab.Units(float64(max(s.wrote.before, w.Status.AvailableReplicas))), nil
	}
	s.wrote = nil
	s.fallen(ctx, w)
	return trimtab.Units(float64(asked)), nil
}

// maxReplicas is the largest number of pods.
const maxReplicas = 10_000

// Nearest rounds to whole pods, at least one unless 0 is allowed.
func (s *Scale) Nearest(a trimtab.Amount) trimtab.Amount {
	if a.Unlimited {
		return trimtab.Units(maxReplicas)
	}
	return trimtab.Units(math.Min(math.Max(math.Round(a.Value), s.fewest()), maxReplicas))
}

// fewest returns the least number that may be set: 0 only if the configuration allows it.
func (s *Scale) fewest() float64 {
	if s.rules.AllowZero {
		return 0
	}
	return 1
}

// Floor returns the least number that may be set now: what disruption budgets require, or the
// present number while a rollout runs.
func (s *Scale) Floor(ctx context.Context) (trimtab.Amount, error) {
	w, err := s.workload(ctx)
	if err != nil {
		return trimtab.Amount{}, err
	}
	least, _, err := s.floor(ctx, w)
	return trimtab.Units(math.Max(float64(least), s.fewest())), err
}

func (s *Scale) floor(ctx context.Context, w *kube.Workload) (least int64, why string, err error) {
	now := s.replicas(w)
	c, err := s.from.watched()
	if err != nil {
		return 0, "", err
	}
	if c == nil {
		return s.leaves(ctx, w, now)
	}
	own := s.wrote != nil && int64(w.Status.ObservedGeneration) < w.Generation // not observed yet: our change
	if why := c.Rollout(w); why != "" && !own {
		return now, why, nil
	}
	if w.Annotations["autoscaling.keda.sh/paused-scale-in"] == "true" {
		return now, "its annotation autoscaling.keda.sh/paused-scale-in", nil
	}
	return s.leaves(ctx, w, now)
}

// leaves returns the number of pods down to which disruption budgets allow lowering.
func (s *Scale) leaves(ctx context.Context, w *kube.Workload, now int64) (least int64, by string, err error) {
	atOnce, least, by, err := s.from.spared(ctx, w)
	if err != nil {
		return 0, "", err
	}
	least = max(least, now-min(atOnce, now))
	if s.wrote != nil {
		least = min(least, s.wrote.before) // removing requested pods that never came disrupts nothing
	}
	return least, by, nil
}

// MayWrite returns an error if another program sets the number.
func (s *Scale) MayWrite(ctx context.Context) error {
	if err := s.refusal.still(s.now()); err != nil {
		return err
	}
	w, err := s.workload(ctx)
	if err != nil {
		return err
	}
	if s.replicas(w) == 0 && !s.rules.AllowZero {
		return fmt.Errorf("%s was scaled to 0, which is left to whoever did it: %w", s.ref, trimtab.ErrRefused)
	}
	c, err := s.from.watched()
	if err != nil || c == nil {
		return err
	}
	other, err := c.Others(s.ref, "", trimtab.Replicas, false)
	if err != nil {
		return err
	}
	if other = cmp.Or(other, w.HeldBy(trimtab.Replicas, s.rules.TakeOver)); other != "" {
		return readOnly(other)
	}
	return paused(c, s.ref)
}

// Write sets the number with one PATCH of scale.
func (s *Scale) Write(ctx context.Context, a trimtab.Amount) error {
	if err := errors.Join(ctx.Err(), a.Validate()); err != nil {
		return fmt.Errorf("write %s: %w", s, err)
	}
	if err := s.MayWrite(ctx); err != nil {
		return err
	}
	w, err := s.workload(ctx)
	if err != nil {
		return err
	}
	goal, now := int64(s.Nearest(a).Value), s.replicas(w)
	if err := s.allow(ctx, w, goal, now); err != nil {
		return fmt.Errorf("set %s to %d: %w", s, goal, err)
	}
	client, err := s.from.client()
	if err != nil {
		return err
	}
	// Once for each write: the watch may be behind, and status changes the version often. It
	// reads the workload itself, since its scale has no generation: a number that another program
	// changed and set back is not the one that was decided on.
	at, err := client.Workload(ctx, s.ref)
	switch {
	case err != nil:
		return err
	case at.UID != s.uid:
		return fmt.Errorf("set %s: it was replaced by another of its name: %w", s, os.ErrNotExist)
	case at.Replicas() != now:
		return fmt.Errorf("set %s: found %d, read %d before: %w", s, at.Replicas(), now, trimtab.ErrStale)
	case s.generation != 0 && at.Generation != s.generation:
		return fmt.Errorf("set %s: it was changed since %d was read: %w", s, now, trimtab.ErrStale)
	}
	s.mark(ctx, w, now-goal)
	after, err := client.SetReplicas(ctx, s.ref, &at.Meta, goal)
	if errors.Is(err, trimtab.ErrRefused) {
		return s.refusal.note(s.now(), err)
	}
	if err != nil {
		return err
	}
	s.generation = at.Generation
	if goal != now {
		s.generation++
	}
	s.wrote = &written{goal, now, after.ResourceVersion, s.generation, s.now()}
	return nil
}

// allow returns why a number may not be set now.
func (s *Scale) allow(ctx context.Context, w *kube.Workload, goal, now int64) error {
	if goal > now && w.Annotations["autoscaling.keda.sh/paused-scale-out"] == "true" {
		return fmt.Errorf("its annotation autoscaling.keda.sh/paused-scale-out: %w", trimtab.ErrRefused)
	}
	least, why, err := s.floor(ctx, w)
	if err != nil {
		return err
	}
	if goal < now && goal < least {
		return fmt.Errorf("at least %d must stay: %s: %w", least, why, trimtab.ErrRefused)
	}
	return nil
}

// readyFor is how long requested pods may take to become ready before the missing ones are given
// up.
const readyFor = 3 * time.Minute

// Hopeless returns why requested pods do not come.
func (s *Scale) Hopeless(ctx context.Context) string {
	w, err := s.workload(ctx)
	if err != nil || s.wrote == nil || s.wrote.before >= s.wrote.replicas || s.now().Sub(s.wrote.at) < readyFor {
		return ""
	}
	if failure := w.Condition("ReplicaFailure"); failure != nil && failure.Status == "True" {
		return "pods cannot be made: " + failure.Message
	}
	return fmt.Sprintf("%d of %d pods are available after %v", w.Status.AvailableReplicas, s.wrote.replicas, readyFor)
}

// Restore raises the number to its baseline. It lowers the number only if the configuration says
// so, since the end of a plan is no reason to remove pods. It then lowers it as far as disruption
// budgets allow, and is complete only at the baseline.
func (s *Scale) Restore(ctx context.Context, undo []byte) error {
	u, err := actuator.ReadUndo[scaleUndo](scaleKind, undo)
	if err != nil {
		return fmt.Errorf("restore %s: %w", s, err)
	}
	err = s.restore(ctx, &u)
	if w, gone := s.workload(ctx); u.Chose && gone == nil {
		// Without the right, nothing was annotated.
		if failed := s.unmark(ctx, w); err == nil && !errors.Is(failed, trimtab.ErrRefused) {
			err = failed
		}
	}
	return err
}

func (s *Scale) restore(ctx context.Context, u *scaleUndo) error {
	now, err := s.Read(ctx)
	if err != nil {
		return err
	}
	goal := float64(u.Replicas)
	if now.Value == goal || now.Value > goal && !u.Lower {
		return nil
	}
	why := ""
	if goal < now.Value {
		w, err := s.workload(ctx)
		if err != nil {
			return err
		}
		least, by, err := s.floor(ctx, w)
		if err != nil {
			return err
		}
		if float64(least) > goal {
			goal, why = float64(least), by
		}
	}
	if goal != now.Value {
		if err := s.Write(ctx, trimtab.Units(goal)); s.refusal.is(err) {
			return later(err)
		} else if err != nil {
			return err
		}
	}
	if why != "" {
		return fmt.Errorf("restore %s to %d: at %v so far, %s", s, u.Replicas, goal, why)
	}
	return nil
}
