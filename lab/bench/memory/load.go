package main

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/trimtab/trimtab/lab/bench/rig"
)

const (
	// inFlight is how many requests of a service may be under way; what is more counts as failed.
	inFlight = 64
	// patience is when a client gives up.
	patience = 2 * time.Second
	// every is how often the memory of the groups is read.
	every = 100 * time.Millisecond
)

// step is a stretch of a course with its level in place of the shape's.
type step struct {
	From, To time.Duration
	Level    float64
}

// course is how the load moves: one day in Day, from Low to High and back,
//
//	level(t) = Low + (High − Low) · (1 − cos 2πt/Day) / 2,
//
// and the steps. A level of 1 is the rate of the bench. A run begins Skip after the begin of the day.
type course struct {
	Length, Day, Skip time.Duration
	Low, High         float64
	Steps             []step
}

func (c *course) level(at time.Duration) float64 {
	at += c.Skip
	for _, s := range c.Steps {
		if at >= s.From && at < s.To {
			return s.Level
		}
	}
	return c.Low + (c.High-c.Low)*(1-math.Cos(2*math.Pi*at.Seconds()/c.Day.Seconds()))/2
}

// all is one course for every service.
func all(c course) func(int) course { return func(int) course { return c } }

// highest is the level of the highest step of a day.
const highest = 1

// day is the course of a row: a day with two steps, both above what it has beside them.
func day(length time.Duration) course {
	part := func(v float64) time.Duration { return time.Duration(v * float64(length)) }
	return course{Length: length, Day: length, Low: 0.3, High: 0.8, Steps: []step{{part(0.25), part(0.32), 0.9}, {part(0.6), part(0.72), highest}}}
}

// worst is the part of a day with its peak, and so much before it that the caches fill.
func worst(length time.Duration) course {
	c := day(length)
	c.Skip = length / 5
	c.Length = 3*length/4 - c.Skip
	return c
}

// request is one that is meant to be sent At the time since the begin, for a user.
type request struct {
	At   time.Duration
	User int
}

// arrivals draws the requests, a Poisson process by thinning. The same seed gives the same requests.
func (c *course) arrivals(rate float64, seed, stream uint64) (out []request) {
	r := rand.New(rand.NewPCG(seed, stream))
	most := max(c.Low, c.High)
	for _, s := range c.Steps {
		most = max(most, s.Level)
	}
	for t := 0.0; ; {
		t += r.ExpFloat64() / (rate * most)
		at := time.Duration(t * float64(time.Second))
		if at >= c.Length {
			return out
		}
		if r.Float64()*most < c.level(at) {
			out = append(out, request{at, r.IntN(users)})
		}
	}
}

// outcome is what became of a request.
type outcome struct {
	At, Took time.Duration
	OK       bool
}

// reading is what the kernel said of a service's memory.
type reading struct {
	At time.Duration
	rig.MemoryUse
}

// seen is what was observed of one service in a run.
type seen struct {
	Outcomes []outcome
	Readings []reading
}

// hears is told of each request of a service; nil: nobody is.
type hears func(service int, from time.Time, took time.Duration, ok bool)

// play sends each service its course, with requests of its own, and reads their memory meanwhile.
func (b *bench) play(ctx context.Context, of func(i int) course, seed uint64, tell hears) ([]seen, error) {
	out, failed := make([]seen, len(b.services)), make([]error, len(b.services))
	var running sync.WaitGroup
	for i, s := range b.services {
		running.Go(func() { out[i], failed[i] = b.playOne(ctx, s, i, of(i), seed, tell) })
	}
	running.Wait()
	return out, errors.Join(failed...)
}

// playOne sends a course to one service, whose number in the run is i.
func (b *bench) playOne(ctx context.Context, s *service, i int, c course, seed uint64, tell hears) (out seen, err error) {
	begin := time.Now()
	var answered func(time.Time, time.Duration, bool)
	if tell != nil {
		answered = func(from time.Time, took time.Duration, ok bool) { tell(i, from, took, ok) }
	}
	var sending sync.WaitGroup
	sending.Go(func() { out.Outcomes = s.send(ctx, begin, c.arrivals(b.Rate, seed, uint64(i)), answered) })
	out.Readings, err = s.read(ctx, begin, c.Length)
	sending.Wait()
	return out, errors.Join(err, ctx.Err())
}

// send sends each request at its time, and returns what became of them when the last has ended.
func (s *service) send(ctx context.Context, begin time.Time, in []request, answered func(time.Time, time.Duration, bool)) []outcome {
	out := make([]outcome, len(in))
	slots := make(chan struct{}, inFlight)
	var under sync.WaitGroup
	defer under.Wait()
	for k, r := range in {
		from := begin.Add(r.At)
		out[k].At = r.At
		select {
		case <-time.After(time.Until(from)):
		case <-ctx.Done():
			return out
		}
		select {
		case slots <- struct{}{}:
		default:
			continue
		}
		under.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			err := s.ask(ctx, r.User)
			out[k].Took, out[k].OK = time.Since(from), err == nil
			if answered != nil {
				answered(from, out[k].Took, err == nil)
			}
			<-slots
		})
	}
	return out
}

// read reads the memory of a service for a time.
func (s *service) read(ctx context.Context, begin time.Time, length time.Duration) (out []reading, err error) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		u, err := s.Use()
		if err != nil {
			return nil, err
		}
		at := time.Since(begin)
		out = append(out, reading{at, u})
		if at >= length {
			return out, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return out, nil
		}
	}
}

// warm asks for every user once, where that fills the service.
func (s *service) warm(ctx context.Context) error {
	if !s.fills {
		return nil
	}
	all := make(chan int)
	go func() {
		defer close(all)
		for u := range users {
			select {
			case all <- u:
			case <-ctx.Done():
				return
			}
		}
	}()
	var failed [4]error
	var workers sync.WaitGroup
	for k := range failed {
		workers.Go(func() {
			for u := range all {
				if err := s.ask(ctx, u); err != nil {
					failed[k] = err
				}
			}
		})
	}
	workers.Wait()
	for _, err := range failed {
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// quantile is the value that a share q of them do not exceed; 0: there is none.
func quantile(in []float64, q float64) float64 {
	if len(in) == 0 {
		return 0
	}
	slices.Sort(in)
	return in[max(0, int(math.Ceil(q*float64(len(in))))-1)]
}
