package path

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codec"
)

// player plays processes that collect spans and send them from time to time.
type player struct {
	tb      testing.TB
	p       *Path
	now     time.Duration
	senders []*process
	out     []*trimtab.Sketch
}

// process is one sender: it sends every so often, first at phase, what had ended
// before; wait is how long that is under way. off is by how much its clock is wrong.
type process struct {
	attrs              []trimtab.Attr
	every, phase, wait time.Duration
	off                time.Duration
	queue              []trimtab.Span
}

// serve adds a span.
func (s *process) serve(trace, id, parent uint64, start, end time.Duration, kind trimtab.SpanKind) {
	out := trimtab.Span{Start: epoch + int64(start+s.off), End: epoch + int64(end+s.off), Kind: kind, Adjusted: 1}
	binary.BigEndian.PutUint64(out.TraceID[8:], trace)
	binary.BigEndian.PutUint64(out.SpanID[:], id)
	binary.BigEndian.PutUint64(out.Parent[:], parent)
	s.queue = append(s.queue, out)
}

// attrsOf is the resource of a process.
func attrsOf(service, instance string) []trimtab.Attr {
	out := []trimtab.Attr{{Key: "service.name", Value: service}, {Key: "host.name", Value: "h"}}
	if instance != "" {
		out = append(out, trimtab.Attr{Key: "service.instance.id", Value: instance})
	}
	return out
}

// play goes on for a time in steps of 10 ms; each calls requests with the time.
func (x *player) play(long time.Duration, requests func(now time.Duration)) {
	for end := x.now + long; x.now < end; x.now += 10 * ms {
		requests(x.now)
		if x.now%(100*ms) == 0 {
			x.observe(x.p.Step(at(x.now), nil))
		}
		for _, s := range x.senders {
			if due := x.now - s.phase - s.wait; due >= 0 && due%s.every == 0 {
				x.send(s, x.now-s.wait)
			}
		}
	}
}

// send sends what had ended by a time.
func (x *player) send(s *process, by time.Duration) {
	var w codec.FrameWriter
	r, _ := w.AddResource(s.attrs)
	var rest []trimtab.Span
	n := 0
	for _, span := range s.queue {
		if span.End > epoch+int64(by+s.off) {
			rest = append(rest, span)
			continue
		}
		span.Resource = r
		if !w.Add(&span) {
			x.tb.Fatal("frame full")
		}
		n++
	}
	s.queue = rest
	if n > 0 {
		x.observe(x.p.Step(at(x.now), w.Frame(0)))
	}
}

func (x *player) observe(out []trimtab.Value) {
	for _, v := range out {
		s := v.(*trimtab.Sketch)
		if err := s.Validate(); err != nil {
			x.tb.Fatal(err)
		}
		x.out = append(x.out, s)
	}
}

// loads are the requests of a workload in each interval from one time to another.
func (x *player) loads(workload string, from, to time.Duration) (loads []float64) {
	for t := from; t < to; t += x.p.config.Every {
		n := 0.0
		for _, s := range x.out {
			if s.Workload == workload && s.From.Equal(at(t)) {
				n += s.Requests
			}
		}
		loads = append(loads, n)
	}
	return loads
}

// late is how many requests of a workload came too late for their interval.
func (x *player) late(workload string, from time.Duration) (n float64) {
	for _, s := range x.out {
		if s.Workload == workload && !s.From.Before(at(from)) {
			n += s.Late
		}
	}
	return n
}

func learning() Config {
	return Config{Discover: true, Every: time.Second, Timeout: 15 * time.Second, Lateness: 6 * time.Second,
		Workloads: []Match{{Name: "web", Attributes: map[string][]string{"service.name": {"web"}}, Threshold: 100 * time.Millisecond}}}
}

func all(tb testing.TB, loads []float64, want float64) {
	tb.Helper()
	for i, n := range loads {
		if math.Abs(n-want) > 1e-9 {
			tb.Errorf("%v requests in interval %d, want %v: %v", n, i, want, loads)
			return
		}
	}
}

func TestASpanCountsWhenItHappenedHoweverItsSenderCollects(t *testing.T) {
	for _, every := range []time.Duration{200 * ms, time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second} {
		for _, replicas := range []int{1, 3} {
			for _, named := range []bool{true, false} {
				t.Run(fmt.Sprint(every, replicas, named), func(t *testing.T) {
					x := &player{tb: t, p: newPath(t, learning())}
					for i := range replicas {
						s := &process{every: every, phase: (every * time.Duration(i) / 3).Round(10 * ms), wait: 10 * ms, attrs: attrsOf("web", "")}
						if named {
							s.attrs = attrsOf("web", fmt.Sprint("web-", i))
						}
						x.senders = append(x.senders, s)
					}
					x.play(90*time.Second, func(now time.Duration) {
						if n := int(now / (50 * ms)); now%(50*ms) == 0 {
							x.senders[n%replicas].serve(uint64(n+1), 1, 0, now-40*ms, now, trimtab.SpanServer)
						}
					})
					all(t, x.loads("web", 30*time.Second, 70*time.Second), 20)
					if n := x.late("web", 30*time.Second); n > 0 {
						t.Errorf("%v requests were late", n)
					}
				})
			}
		}
	}
}

// TestAnIntervalIsToldAsSoonAsItsSendersHaveSent: a quick sender is not waited for as
// if it collected, and one that collects is not waited for once it has sent.
func TestAnIntervalIsToldAsSoonAsItsSendersHaveSent(t *testing.T) {
	for _, c := range []struct{ every, most time.Duration }{{10 * ms, 300 * ms}, {200 * ms, 500 * ms}, {5 * time.Second, 5300 * ms}} {
		x := &player{tb: t, p: newPath(t, learning())}
		x.senders = []*process{{every: c.every, wait: 10 * ms, attrs: attrsOf("web", "")}}
		n := uint64(0)
		x.play(60*time.Second, func(now time.Duration) {
			n++
			x.senders[0].serve(n, 1, 0, now-40*ms, now, trimtab.SpanServer)
		})
		least, most := time.Hour, time.Duration(0)
		for _, s := range x.out {
			if s.From.After(at(30 * time.Second)) {
				least, most = min(least, s.Wait.Duration()), max(most, s.Wait.Duration())
			}
		}
		if most > c.most || least > 1100*ms {
			t.Errorf("of a sender of every %v, intervals were told %v to %v after their end, want at most %v", c.every, least, most, c.most)
		}
	}
}

func TestAPauseOfASenderHoldsUpNothingForLong(t *testing.T) {
	x := &player{tb: t, p: newPath(t, learning())}
	x.senders = []*process{
		{every: 5 * time.Second, wait: 10 * ms, attrs: attrsOf("web", "a")},
		{every: 5 * time.Second, phase: 2 * time.Second, wait: 10 * ms, attrs: attrsOf("web", "b")},
	}
	x.play(120*time.Second, func(now time.Duration) {
		n := int(now / (50 * ms))
		if now%(50*ms) != 0 {
			return
		}
		if n%2 == 0 || now < 40*time.Second || now > 80*time.Second {
			x.senders[n%2].serve(uint64(n+1), 1, 0, now-40*ms, now, trimtab.SpanServer)
		}
	})
	all(t, x.loads("web", 20*time.Second, 40*time.Second), 20)
	all(t, x.loads("web", 42*time.Second, 80*time.Second), 10)
	all(t, x.loads("web", 82*time.Second, 100*time.Second), 20)
	for _, s := range x.out {
		if s.From.After(at(20*time.Second)) && s.Wait > 7 {
			t.Errorf("the interval from %v was told %v s after its end", s.From, s.Wait)
		}
	}
}

// calling plays web, which calls shop for each request.
func calling(x *player, web, shop *process) func(time.Duration) {
	return func(now time.Duration) {
		if now%(50*ms) != 0 {
			return
		}
		n := uint64(now/(50*ms)) + 1
		web.serve(n, 1, 0, now-60*ms, now, trimtab.SpanServer)
		web.serve(n, 2, 1, now-50*ms, now-10*ms, trimtab.SpanClient)
		shop.serve(n, 3, 2, now-48*ms, now-12*ms, trimtab.SpanServer)
	}
}

func TestATraceIsFinishedWhenItsPartsCanNoLongerBeOnTheWay(t *testing.T) {
	for _, c := range []struct{ web, shop, phase time.Duration }{
		{5 * time.Second, 5 * time.Second, 2500 * ms}, {200 * ms, 5 * time.Second, 0}, {5 * time.Second, 200 * ms, 0}, {10 * time.Second, time.Second, 0},
	} {
		x := &player{tb: t, p: newPath(t, learning())}
		web := &process{every: c.web, wait: 10 * ms, attrs: attrsOf("web", "")}
		shop := &process{every: c.shop, phase: c.phase, wait: 10 * ms, attrs: attrsOf("shop", "")}
		x.senders = []*process{web, shop}
		x.play(100*time.Second, calling(x, web, shop))
		name := fmt.Sprintf("web every %v, shop every %v", c.web, c.shop)
		all(t, x.loads("web", 40*time.Second, 80*time.Second), 20)
		all(t, x.loads("shop", 40*time.Second, 80*time.Second), 20)
		for _, s := range x.out {
			if s.Workload != "web" || s.From.Before(at(40*time.Second)) || s.From.After(at(80*time.Second)) {
				continue
			}
			if got := meanMS(&s.Components["web"].Sojourn); math.Abs(got-(20+4)/2.0) > 0.2 {
				t.Fatalf("%s: web itself takes %v ms a span, want 12", name, got)
			}
			var pods []string
			for _, pod := range s.Servpods {
				pods = append(pods, fmt.Sprintf("%s %.0f×%.0f ms", pod.Component, pod.N, 1000*pod.Sum/pod.N))
			}
			if want := "[shop 20×40 ms web 20×20 ms]"; fmt.Sprint(pods) != want {
				t.Fatalf("%s: %v, want %v", name, pods, want)
			}
		}
	}
}

func TestWorkloadsThatShareNoTraceDoNotWaitForEachOther(t *testing.T) {
	x := &player{tb: t, p: newPath(t, learning())}
	quick := &process{every: 100 * ms, wait: 10 * ms, attrs: attrsOf("web", "")}
	slow := &process{every: 10 * time.Second, wait: 10 * ms, attrs: attrsOf("mail", "")}
	x.senders = []*process{quick, slow}
	x.play(60*time.Second, func(now time.Duration) {
		if n := uint64(now / (50 * ms)); now%(50*ms) == 0 {
			quick.serve(2*n+1, 1, 0, now-40*ms, now, trimtab.SpanServer)
			slow.serve(2*n+2, 1, 0, now-40*ms, now, trimtab.SpanServer)
		}
	})
	for _, s := range x.out {
		if s.Workload == "web" && s.From.After(at(20*time.Second)) && s.Wait > 0.5 {
			t.Fatalf("web waited %v s", s.Wait)
		}
	}
	all(t, x.loads("mail", 20*time.Second, 40*time.Second), 20)
}

// TestARequestWhoseCallerSendsNoSpansCountsInItsInterval: and one that waits for a
// caller that takes long counts once.
func TestARequestWhoseCallerSendsNoSpansCountsInItsInterval(t *testing.T) {
	x := &player{tb: t, p: newPath(t, learning())}
	web := &process{every: 5 * time.Second, wait: 10 * ms, attrs: attrsOf("web", "")}
	back := &process{every: 200 * ms, wait: 10 * ms, attrs: attrsOf("back", "")}
	x.senders = []*process{web, back}
	x.play(80*time.Second, func(now time.Duration) {
		if n := uint64(now / (50 * ms)); now%(50*ms) == 0 {
			web.serve(2*n+1, 1, 77, now-40*ms, now, trimtab.SpanServer) // 77 never comes
			if now > 3*time.Second {
				web.serve(2*n+2, 1, 0, now-3*time.Second, now, trimtab.SpanServer)
				web.serve(2*n+2, 2, 1, now-2900*ms, now-2700*ms, trimtab.SpanClient)
				back.serve(2*n+2, 3, 2, now-2890*ms, now-2710*ms, trimtab.SpanServer)
			}
		}
	})
	all(t, x.loads("web", 30*time.Second, 60*time.Second), 40)
	all(t, x.loads("back", 30*time.Second, 55*time.Second), 20)
}

func TestTheTimesOfAWrongClockAreCorrectedAndTold(t *testing.T) {
	for _, off := range []time.Duration{-3 * time.Hour, 5 * time.Second, 1000 * time.Hour} {
		x := &player{tb: t, p: newPath(t, learning())}
		web := &process{every: 5 * time.Second, wait: 10 * ms, off: off, attrs: attrsOf("web", "")}
		x.senders = []*process{web}
		x.play(150*time.Second, func(now time.Duration) {
			if n := uint64(now / (50 * ms)); now%(50*ms) == 0 {
				web.serve(n+1, 1, 0, now-40*ms, now, trimtab.SpanServer)
			}
		})
		sum, flagged := 0.0, uint64(0)
		for _, n := range x.loads("web", 70*time.Second, 130*time.Second) {
			if sum += n; n < 18 || n > 22 {
				t.Errorf("clock off by %v: %v requests in a second", off, n)
			}
		}
		for _, s := range x.out {
			flagged += s.Flagged["clock"]
		}
		if math.Abs(sum-60*20) > 12 || flagged < 1000 {
			t.Errorf("clock off by %v: %v requests in a minute, want 1200; %d spans told", off, sum, flagged)
		}
	}
}

func TestWhatComesBeyondTheLongestWaitIsToldAndCountedNowhere(t *testing.T) {
	x := &player{tb: t, p: newPath(t, learning())}
	web := &process{every: time.Second, wait: 30 * time.Second, attrs: attrsOf("web", "")}
	x.senders = []*process{web}
	x.play(120*time.Second, func(now time.Duration) {
		if n := uint64(now / (50 * ms)); now%(50*ms) == 0 {
			web.serve(n+1, 1, 0, now-40*ms, now, trimtab.SpanServer)
		}
	})
	requests, late, missing := 0.0, 0.0, 0.0
	for _, s := range x.out {
		requests, late, missing = requests+s.Requests, late+s.Late, max(missing, s.Missing)
	}
	if requests != 0 || late < 1000 || missing != 1 {
		t.Errorf("%v requests counted, %v late, %v missing", requests, late, missing)
	}
	balanced(t, x.p)
}

func TestManySendersTakeBoundedMemory(t *testing.T) {
	p := newPath(t, learning())
	for i := range 100_000 {
		s := &process{attrs: attrsOf("web", fmt.Sprint(i))}
		s.serve(uint64(i+1), 1, 0, time.Duration(i)*ms-5*ms, time.Duration(i)*ms, trimtab.SpanServer)
		x := &player{tb: t, p: p, now: time.Duration(i) * ms}
		x.send(s, x.now)
	}
	if n := len(p.senders.clocks); n > maxCached+2 {
		t.Errorf("%d senders are followed", n)
	}
	balanced(t, p)
}

func TestAFrameOfMoreSendersThanAreRememberedIsReadWhole(t *testing.T) {
	p := newPath(t, learning())
	n := 0
	for range 3 {
		var w codec.FrameWriter
		for range maxCached - 1000 {
			r, _ := w.AddResource(attrsOf("web", fmt.Sprint(n)))
			w.Add(&trimtab.Span{TraceID: [16]byte{1, byte(n), byte(n >> 8)}, SpanID: [8]byte{1}, Start: epoch, End: epoch + 1, Adjusted: 1, Resource: r, Kind: trimtab.SpanServer})
			n++
		}
		p.Step(at(0), w.Frame(0))
	}
	if got := count(p, "trimtab_path_received_spans_total"); got != float64(n) {
		t.Errorf("received %v spans, want %d", got, n)
	}
	if n := len(p.senders.clocks); n > maxCached+2 {
		t.Errorf("%d senders are followed", n)
	}
	balanced(t, p)
}

func TestTheClassesOfLatenessCoverAllTimes(t *testing.T) {
	for ns := int64(1); ns < 60e9; ns += ns/7 + 1 {
		k := lateClass(ns)
		if ns >= lateUpper(k) || k > 0 && ns < lateUpper(k-1) {
			t.Fatalf("%d ns is in class %d, from %d to %d", ns, k, lateUpper(max(k-1, 0)), lateUpper(k))
		}
	}
}

// TestAMissIsForetoldBeforeTheIntervalsThatTellItAreClosed: of three senders that collect for
// 5 s each, some have sent requests that were too late well before all have.
func TestAMissIsForetoldBeforeTheIntervalsThatTellItAreClosed(t *testing.T) {
	x := &player{tb: t, p: newPath(t, learning())}
	for i := range 3 {
		x.senders = append(x.senders, &process{every: 5 * time.Second, phase: time.Duration(i) * 1700 * ms, wait: 10 * ms, attrs: attrsOf("web", fmt.Sprint("web-", i))})
	}
	const turn = 60 * time.Second
	foretold, told := time.Duration(0), time.Duration(0)
	x.play(80*time.Second, func(now time.Duration) {
		n, took := int(now/(50*ms)), 40*ms
		if now > turn {
			took = 200 * ms
		}
		if now%(50*ms) == 0 {
			x.senders[n%3].serve(uint64(n+1), 1, 0, now-took, now, trimtab.SpanServer)
		}
		for _, s := range x.out {
			var all trimtab.Part
			for _, p := range s.Newer {
				all.Requests, all.Under = all.Requests+p.Requests, all.Under+p.Under
			}
			if now <= turn && (all.Under < all.Requests || s.Under < s.Requests) {
				t.Fatalf("at %v a miss is told that is none: %+v", now, s)
			}
			if foretold == 0 && all.Requests >= 10 && all.Under < all.Requests {
				foretold = now - turn
			}
			if told == 0 && s.Under < s.Requests {
				told = now - turn
			}
		}
		x.out = nil
	})
	if foretold == 0 || foretold > told-2*time.Second {
		t.Errorf("a miss was foretold after %v, and told after %v: want 2 s before", foretold, told)
	}
}

// TestWhatIsForetoldIsBounded: neither a clock that is wrong nor what is late makes
// intervals, and no sender that is told at once makes any.
func TestWhatIsForetoldIsBounded(t *testing.T) {
	p := newPath(t, learning())
	now := epoch + int64(time.Hour)
	for _, end := range []int64{1, now - int64(2*time.Minute), now + int64(time.Hour), now - 1e9} {
		s := trimtab.Span{Kind: trimtab.SpanServer, Start: end - 1, End: end, Adjusted: 1}
		p.windows.floors = append(p.windows.floors[:0], 0)
		p.windows.foretell(0, s.End, now, 1, true)
	}
	if n := len(p.windows.open); n != 1 {
		t.Errorf("%d intervals are open, want that of the one request that may be of now", n)
	}
}
