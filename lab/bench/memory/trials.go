package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/trimtab/trimtab/analyzer/workingset"
)

// trial is one step of the load of one service under a limit that trimtab chose.
type trial struct {
	Service string
	// From and To are the levels of the load, Limit and Ended the limits at the step and at the end, in
	// bytes.
	From, To     float64
	Limit, Ended float64
	Kills        float64
	InTime       float64
	// Raised is the time from the step to the first larger limit that an observer saw; 0: it stayed.
	// Pressed is the time from the first reading at which the service used at least nearly all of the
	// limit, or met it, to that larger limit; Short says that there was such a reading.
	Raised, Pressed time.Duration
	Short           bool
}

const (
	// nearly is the part of the limit in use that counts as pressure.
	nearly = 0.95
	// watches is how often the observer reads limit and use.
	watches = 20 * time.Millisecond
	// lowFor is the length of the load before the step, stepFor that of the step.
	lowFor, stepFor = 4 * time.Second, 10 * time.Second
)

// trials plays steps of the load: in each round one for each service, from and to random levels, up to
// half above all that was seen. The limits are those that trimtab would have left after eight days like
// the recorded ones; then trimtab runs with what it would have learnt in these days.
func (b *bench) trials(ctx context.Context, r *result) error {
	draw := rand.New(rand.NewPCG(b.Seed, 7))
	for done := 0; done < b.Trials; done += len(b.services) {
		all, err := b.round(ctx, r.Days, draw)
		if err != nil {
			return fmt.Errorf("trials: %w", err)
		}
		r.Trials = append(r.Trials, all...)
		b.say("%d trials: %s", len(r.Trials), brief(r.Trials))
	}
	return nil
}

// round plays a trial with each service.
func (b *bench) round(ctx context.Context, days map[string][][]reading, draw *rand.Rand) (out []trial, err error) {
	courses := make([]course, len(b.services))
	for i, s := range b.services {
		from, to := 0.2+0.3*draw.Float64(), 0.6+0.9*draw.Float64()
		courses[i] = course{Length: lowFor + stepFor, Day: lowFor + stepFor, Low: from, High: from, Steps: []step{{lowFor, lowFor + stepFor, to}}}
		out = append(out, trial{Service: s.name, From: from, To: to})
		u, err := s.Use()
		if err != nil {
			return nil, err
		}
		// trimtab's host refuses a limit below the use and an eighth of it.
		if err := s.Set(max(need(days[s.name])*(1+workingset.Margin), 1.125*u.Working)); err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
	}
	if err := b.teach(ctx, days); err != nil {
		return nil, err
	}
	p, err := b.manage(ctx, "act")
	if err != nil {
		return nil, err
	}
	defer p.close()
	watched := make([]watch, len(b.services))
	watching, stop := context.WithCancel(ctx)
	var watchers sync.WaitGroup
	for i, s := range b.services {
		watchers.Go(func() { watched[i] = s.watch(watching, time.Now().Add(lowFor)) })
	}
	all, err := b.play(ctx, func(i int) course { return courses[i] }, draw.Uint64(), p.tell)
	stop()
	watchers.Wait()
	if err != nil {
		return nil, err
	}
	for i, s := range b.services {
		t := &out[i]
		f := score(all[i], b.Within)
		t.Kills, t.InTime = f.Kills, f.InTime
		watched[i].judge(t)
		if err := s.Set(0); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// watch is what an observer of one service saw: the first reading with pressure, and the larger limit
// after the step.
type watch struct {
	step             time.Time
	pressed, raised  time.Time
	first, last, met float64
}

// watch reads limit and use every 20 ms until ctx ends; the step of the load comes at a time.
func (s *service) watch(ctx context.Context, step time.Time) (w watch) {
	tick := time.NewTicker(watches)
	defer tick.Stop()
	w.step = step
	for ; ; <-tick.C {
		if ctx.Err() != nil {
			return w
		}
		u, err := s.Use()
		now := time.Now()
		if err != nil {
			continue
		}
		if w.first == 0 || now.Before(step) {
			w.first, w.met = u.Limit, u.Met
		}
		w.last = u.Limit
		if now.Before(step) {
			continue
		}
		if w.raised.IsZero() && u.Limit > w.first {
			w.raised = now
		}
		if w.raised.IsZero() && w.pressed.IsZero() && (u.Working >= nearly*u.Limit || u.Met > w.met && u.Working >= 0.9*u.Limit) {
			w.pressed = now
		}
	}
}

func (w *watch) judge(t *trial) {
	t.Limit, t.Ended, t.Short = w.first, w.last, !w.pressed.IsZero()
	if !w.raised.IsZero() {
		t.Raised = w.raised.Sub(w.step)
		if t.Short {
			t.Pressed = w.raised.Sub(w.pressed)
		}
	}
}

// brief tells how trials went.
func brief(all []trial) string {
	kills, killed, raised, short, unanswered := 0.0, 0, 0, 0, 0
	var took []float64
	for _, t := range all {
		kills += t.Kills
		if t.Kills > 0 {
			killed++
		}
		if t.Raised > 0 {
			raised++
		}
		if t.Short {
			short++
			if t.Raised == 0 {
				unanswered++
			} else {
				took = append(took, t.Pressed.Seconds())
			}
		}
	}
	text := fmt.Sprintf("%d with a kill (%.0f in all), %d with a larger limit, %d short of memory", killed, kills, raised, short)
	if len(took) > 0 {
		text += fmt.Sprintf(", from that to the larger limit %.2f s at the median and %.2f s at most", quantile(took, 0.5), quantile(took, 1))
	}
	if unanswered > 0 {
		text += fmt.Sprintf(", %d of them without a larger limit", unanswered)
	}
	return text
}
