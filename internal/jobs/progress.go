package jobs

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"math"
	"time"

	"github.com/trimtab/trimtab"
)

// MaxReport bounds the bytes of one report.
const MaxReport = 4 << 10

// Report is a job's own report.
type Report struct {
	// Done is the part of the work that is done, in [0, 1].
	Done *float64 `json:"done,omitempty"`
	// Step is the number of steps that are done, Steps how many there are.
	Step  *float64 `json:"step,omitempty"`
	Steps *float64 `json:"steps,omitempty"`
	// Saved is how far the last checkpoint was, in the unit of Step or, without Step, of Done:
	// work up to there cannot be lost. Unlike Checkpoint it stays valid until the next one, so
	// that polling misses none.
	Saved *float64 `json:"saved,omitempty"`
	// Checkpoint says that all work so far was saved, once.
	Checkpoint bool `json:"checkpoint,omitempty"`
	// Finished says that the job needs no more resources.
	Finished bool `json:"finished,omitempty"`
}

// maxSteps bounds the steps of a job.
const maxSteps = 1e15

// Parse reads a report. Its errors are trimtab.ErrInvalid, and quote nothing.
func Parse(b []byte) (Report, error) {
	var r Report
	if len(b) > MaxReport {
		return r, trimtab.Invalidf("read progress: %d bytes, limit %d", len(b), MaxReport)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return Report{}, trimtab.Invalidf(`read progress: not a JSON object such as {"done": 0.4} or {"step": 12, "steps": 100}`)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Report{}, trimtab.Invalidf("read progress: something follows the JSON object")
	}
	return r, r.validate()
}

func (r *Report) validate() error {
	if r.Done == nil && r.Step == nil && r.Saved == nil && !r.Checkpoint && !r.Finished {
		return trimtab.Invalidf("read progress: it says nothing: want done, step, saved, checkpoint or finished")
	}
	if r.Done != nil && !(*r.Done >= 0 && *r.Done <= 1) {
		return trimtab.Invalidf("read progress: done %v: want 0 to 1", *r.Done)
	}
	for _, v := range []*float64{r.Step, r.Steps, r.Saved} {
		if v != nil && !(*v >= 0 && *v <= maxSteps) {
			return trimtab.Invalidf("read progress: step %v: want 0 to %v", *v, maxSteps)
		}
	}
	if r.Step != nil && r.Steps != nil && *r.Step > *r.Steps {
		return trimtab.Invalidf("read progress: step %v of %v", *r.Step, *r.Steps)
	}
	if done := r.reached(); r.Saved != nil && done != nil && *r.Saved > *done {
		return trimtab.Invalidf("read progress: saved %v of %v that are done", *r.Saved, *done)
	}
	return nil
}

// reached returns how far the job is, in the unit of Saved; nil: unknown.
func (r *Report) reached() *float64 {
	if r.Step != nil {
		return r.Step
	}
	return r.Done
}

// silentAfter is how long, of its running time, a job may be without a report and still be
// predicted.
const silentAfter = time.Minute

// Progress is the state of a job. Durations count only the time that it runs, not the time that
// it is suspended. The zero Progress is that of a job that has reported nothing.
type Progress struct {
	// Last has the last reported value of each field; At is when the report came.
	Last Report
	At   time.Time
	// Elapsed is how long it ran since it was first seen, or restarted, and SinceCheckpoint since
	// then or since its last checkpoint.
	Elapsed, SinceCheckpoint time.Duration
	// Attained is the CPU time that it was given so far, in core-seconds.
	Attained float64
	// Backwards counts reports with less progress than before, Lost the core-seconds that were
	// lost when it was killed.
	Backwards int
	Lost      float64
	// Problem is why its last report could not be used; "": it could.
	Problem string

	heard time.Duration // Elapsed at the last report
	rate  *float64      // steps per second of running time
}

// Take applies a valid report.
func (p *Progress) Take(now time.Time, r Report) {
	p.Problem = ""
	if less(r.Done, p.Last.Done) || less(r.Step, p.Last.Step) || less(r.Saved, p.Last.Saved) {
		p.Backwards++
		p.Problem = "it reported less than before: taken for one that began again"
		p.Last, p.rate = Report{}, nil
		p.Elapsed, p.SinceCheckpoint, p.heard = 0, 0, 0
	}
	if r.Step != nil && p.Last.Step != nil && p.Elapsed > p.heard {
		rate := (*r.Step - *p.Last.Step) / (p.Elapsed - p.heard).Seconds()
		if p.rate != nil { // half of the past: a job whose resources change has another soon
			rate = (rate + *p.rate) / 2
		}
		p.rate = &rate
	}
	p.save(&r)
	r.Done = cmp.Or(r.Done, p.Last.Done)
	r.Step = cmp.Or(r.Step, p.Last.Step)
	r.Steps = cmp.Or(r.Steps, p.Last.Steps)
	r.Saved = cmp.Or(r.Saved, p.Last.Saved)
	p.Last, p.At, p.heard = r, now, p.Elapsed
}

// save updates SinceCheckpoint, the run time since the last checkpoint. If a
// checkpoint was made since the last report, its age is estimated from the work
// done after it, at the speed since that report:
//
//	age = (time between the reports) (done - saved) / (done - done before)
func (p *Progress) save(r *Report) {
	done, before := r.reached(), p.Last.reached()
	switch {
	case r.Checkpoint:
		p.SinceCheckpoint = 0
	case r.Saved == nil || p.Last.Saved != nil && *r.Saved == *p.Last.Saved:
	case done != nil && *r.Saved == *done:
		p.SinceCheckpoint = 0
	case p.At.IsZero(): // the report may have been written long before it was read
	case done == nil || before == nil || *done <= *before:
		p.SinceCheckpoint = min(p.SinceCheckpoint, p.Elapsed-p.heard)
	default:
		since := (p.Elapsed - p.heard).Seconds() * (*done - *r.Saved) / (*done - *before)
		if since < p.SinceCheckpoint.Seconds() {
			p.SinceCheckpoint = time.Duration(since * float64(time.Second))
		}
	}
}

func less(v, before *float64) bool { return v != nil && before != nil && *v < *before }

// Run records that the job ran for a while with the given number of cores.
func (p *Progress) Run(d time.Duration, cores float64) {
	if d <= 0 || !(cores >= 0) || math.IsInf(cores, 1) {
		return
	}
	p.Elapsed += d
	p.SinceCheckpoint += d
	p.Attained += d.Seconds() * cores
}

// Kill records that the job was killed, which loses the work since its last checkpoint.
func (p *Progress) Kill(cores float64) {
	p.Lost += p.SinceCheckpoint.Seconds() * cores
	p.Last, p.rate = Report{}, nil
	p.Elapsed, p.SinceCheckpoint, p.heard = 0, 0, 0
}

// Silent reports whether it ran for long without a word.
func (p *Progress) Silent() bool { return p.At.IsZero() || p.Elapsed-p.heard > silentAfter }

// Fraction returns the fraction that is done, and false if unknown.
func (p *Progress) Fraction() (float64, bool) {
	switch {
	case p.Silent():
		return 0, false
	case p.Last.Done != nil:
		return *p.Last.Done, true
	case p.Last.Step != nil && p.Last.Steps != nil && *p.Last.Steps > 0:
		return *p.Last.Step / *p.Last.Steps, true
	}
	return 0, false
}

// Steps returns the steps that remain, and how many it makes in a second of running; false if
// unknown.
func (p *Progress) Steps() (remaining, rate float64, ok bool) {
	if p.Silent() || p.rate == nil || *p.rate <= 0 || p.Last.Step == nil || p.Last.Steps == nil {
		return 0, 0, false
	}
	return *p.Last.Steps - *p.Last.Step, *p.rate, true
}
