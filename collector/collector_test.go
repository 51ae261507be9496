package collector_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codec"
	"github.com/trimtab/trimtab/collector"
	"github.com/trimtab/trimtab/collector/internal/spantest"
	"github.com/trimtab/trimtab/internal/metric"
)

func open(t *testing.T, c collector.Config) *collector.Source {
	t.Helper()
	c.Metrics = metric.NewSet()
	s, err := collector.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	return s.Source("test")
}

// span makes span n of trace n/16.
func span(n int) *trimtab.Span {
	s := &trimtab.Span{Start: int64(n), End: int64(n + 1), Adjusted: 1, Kind: trimtab.SpanServer}
	binary.BigEndian.PutUint64(s.TraceID[8:], uint64(n/16+1))
	binary.BigEndian.PutUint64(s.SpanID[:], uint64(n+1))
	return s
}

func resource(service string) *collector.Resource {
	return collector.NewResource([]trimtab.Attr{{Key: "service.name", Value: service}})
}

func TestAllSpansOfATraceShareAPartition(t *testing.T) {
	b := &spantest.Bus{}
	from := open(t, collector.Config{Bus: b, Partitions: 7})
	p := from.Packer()
	const n = 16 * 1000
	for i := range n {
		p.SetResource(resource(fmt.Sprint(i % 5)))
		p.Add(span(i))
	}
	if err := from.Send(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	of := map[[16]byte]int{}
	sizes := map[int]int{}
	for _, f := range b.Frames() {
		for _, s := range spantest.Unpack([]*trimtab.SpanFrame{f}) {
			if at, seen := of[s.TraceID]; seen && at != f.Partition {
				t.Fatalf("trace %x in partitions %d and %d", s.TraceID, at, f.Partition)
			}
			of[s.TraceID] = f.Partition
			sizes[f.Partition]++
		}
	}
	if len(of) != n/16 {
		t.Fatalf("%d traces, want %d", len(of), n/16)
	}
	for i := range 7 {
		if share := float64(sizes[i]) / n * 7; share < 0.7 || share > 1.3 {
			t.Errorf("partition %d has %.2f of its fair share", i, share)
		}
	}
}

// The partition of a trace is a promise between processes of any version.
func TestPartitionsNeverChange(t *testing.T) {
	got := []int{}
	for i := range 8 {
		got = append(got, collector.Partition([16]byte{byte(i), 15: byte(7 * i)}, 1000))
	}
	if d := cmp.Diff([]int{0, 266, 249, 633, 215, 188, 214, 667}, got); d != "" {
		t.Error(d)
	}
}

func TestWhatGoesInComesOutWithItsResource(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		partitions := rapid.IntRange(1, 4).Draw(t, "partitions")
		p := collector.NewPacker(partitions)
		want := map[[8]byte]string{}
		for i := range rapid.IntRange(0, 200).Draw(t, "spans") {
			name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "service")
			p.SetResource(resource(name))
			p.Add(span(i))
			want[span(i).SpanID] = name
		}
		got := map[[8]byte]string{}
		for _, s := range spantest.Unpack(p.Frames()) {
			got[s.SpanID] = s.Attrs["service.name"]
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatal(d)
		}
	})
}

func TestFramesAreCutWhereTheyWouldNotFitAMessage(t *testing.T) {
	p := collector.NewPacker(1)
	const n = 70_000
	for i := range n {
		p.SetResource(resource(strings.Repeat("x", 1000) + fmt.Sprint(i/100)))
		p.Add(span(i))
	}
	frames := p.Frames()
	for _, f := range frames {
		if len(f.Data) > 1<<20-(16<<10) {
			t.Errorf("frame of %d bytes", len(f.Data))
		}
	}
	if got := len(spantest.Unpack(frames)); got != n {
		t.Errorf("%d spans in %d frames, want %d", got, len(frames), n)
	}
}

func TestAResourceStandsOnceInAFrameHoweverOftenItComesBack(t *testing.T) {
	p := collector.NewPacker(1)
	big, small := resource(strings.Repeat("x", 1000)), resource("y")
	for i := range 1000 {
		p.SetResource([]*collector.Resource{big, small}[i%2])
		p.Add(span(i))
	}
	frames := p.Frames()
	if n := len(frames[0].Data); len(frames) != 1 || n > 1000*codec.SpanBytes+1200 {
		t.Errorf("%d frames, the first of %d bytes", len(frames), n)
	}
	for i, s := range spantest.Unpack(frames) {
		if want := []int{1000, 1}[i%2]; len(s.Attrs["service.name"]) != want {
			t.Fatalf("span %d has a name of %d bytes", i, len(s.Attrs["service.name"]))
		}
	}
}

func TestOneRequestCannotFillMemoryWithCopiesOfItsResources(t *testing.T) {
	from := open(t, collector.Config{Bus: &spantest.Bus{}, Partitions: 256})
	p := from.Packer()
	const n = 100_000
	value := strings.Repeat("v", 1000)
	for i := range n {
		if i%200 == 0 { // a new resource of 15 KB, wanted in nearly every partition
			attrs := make([]trimtab.Attr, 15)
			for k := range attrs {
				attrs[k] = trimtab.Attr{Key: fmt.Sprint(i, k), Value: value}
			}
			p.SetResource(collector.NewResource(attrs))
		}
		p.Add(span(16 * i))
	}
	total := 0
	for _, f := range p.Frames() {
		total += len(f.Data)
	}
	rejected, why := p.Rejected(), p.Complaint()
	if total > 50<<20 || p.Spans()+int(rejected) != n || !strings.Contains(why, fmt.Sprintf("%d for their too_large (", rejected)) {
		t.Errorf("%d MiB, %d spans, %s", total>>20, p.Spans(), why)
	}
}

func TestOneRequestMayHaveMoreResourcesThanAFrameCanName(t *testing.T) {
	p := collector.NewPacker(1)
	const n = 66_000
	for i := range n {
		p.SetResource(collector.NewResource(nil))
		p.Add(span(i))
	}
	if got := len(spantest.Unpack(p.Frames())); got != n {
		t.Errorf("%d spans, want %d", got, n)
	}
}

func TestSpansWithoutIDsAreRejectedAndCounted(t *testing.T) {
	b := &spantest.Bus{}
	from := open(t, collector.Config{Bus: b})
	p := from.Packer()
	p.Add(&trimtab.Span{SpanID: [8]byte{1}})
	p.Add(&trimtab.Span{TraceID: [16]byte{1}})
	p.Add(&trimtab.Span{TraceID: [16]byte{1}})
	p.Add(span(0))
	p.Reject(collector.BadParentID)
	if err := from.Send(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	want := collector.Counts{Received: 5, Accepted: 1, Rejected: map[collector.Reason]uint64{
		collector.BadTraceID: 1, collector.BadSpanID: 2, collector.BadParentID: 1}}
	if d := cmp.Diff(want, from.Counts()); d != "" {
		t.Error(d)
	}
	if n, why := p.Rejected(), p.Complaint(); n != 4 || !strings.HasPrefix(why, "4 spans rejected: 1 for their trace_id (not 16 bytes") || !strings.Contains(why, ", 2 for their span_id (") {
		t.Errorf("%d: %s", n, why)
	}
}

func TestAdjustedCountsStayInTheRangeOfAFrame(t *testing.T) {
	for th, want := range map[uint64]float32{0: 1, 1 << 55: 2, 0xc << 52: 4, 1<<56 - 1: 1e9, 1 << 56: 1} {
		if got := collector.AdjustedCount(th); got != want {
			t.Errorf("threshold %x: %v, want %v", th, got, want)
		}
	}
	p := collector.NewPacker(1)
	for _, a := range []float32{0, -1, float32(nan()), 1e30, 3} {
		s := span(0)
		s.Adjusted = a
		p.Add(s)
	}
	var got []float32
	for _, s := range spantest.Unpack(p.Frames()) {
		got = append(got, s.Adjusted)
	}
	if d := cmp.Diff([]float32{1, 1, 1, 1e9, 3}, got); d != "" {
		t.Error(d)
	}
}

func nan() float64 { var zero float64; return zero / zero }

func TestOKIsSaidOnlyWhenTheAnalyzerHandledEveryFrame(t *testing.T) {
	broken := errors.New("analyzer broken")
	b := &spantest.Bus{Handle: func(_ context.Context, f *trimtab.SpanFrame) error {
		if f.Partition == 1 {
			return broken
		}
		return nil
	}}
	from := open(t, collector.Config{Bus: b, Partitions: 3})
	p := from.Packer()
	for i := range 1000 {
		p.Add(span(i))
	}
	err := from.Send(t.Context(), p)
	r := collector.AsRefusal(err)
	if r == nil || r.Reason != collector.Unanswered || r.RetryAfter <= 0 || !errors.Is(err, broken) || !errors.Is(err, trimtab.ErrRefused) {
		t.Fatalf("%v", err)
	}
	want := collector.Counts{Received: 1000, Rejected: map[collector.Reason]uint64{collector.Unanswered: 1000}}
	if d := cmp.Diff(want, from.Counts()); d != "" {
		t.Error(d)
	}
}

func TestAnAnalyzerThatNeverAnswersHoldsASenderForABoundedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &spantest.Bus{Handle: func(ctx context.Context, _ *trimtab.SpanFrame) error {
			<-ctx.Done()
			return ctx.Err()
		}}
		from := open(t, collector.Config{Bus: b, AnswerTimeout: 3 * time.Second})
		p := from.Packer()
		p.Add(span(0))
		start := time.Now()
		err := from.Send(t.Context(), p)
		if r := collector.AsRefusal(err); r == nil || r.Reason != collector.Unanswered {
			t.Fatalf("%v", err)
		}
		if waited := time.Since(start); waited != 3*time.Second {
			t.Errorf("waited %v", waited)
		}
	})
}

func TestUnderASlowAnalyzerBytesInFlightAreBoundedAndEverySpanIsAnsweredFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var inFlight, most atomic.Int64
		b := &spantest.Bus{Handle: func(_ context.Context, f *trimtab.SpanFrame) error {
			now := inFlight.Add(int64(len(f.Data)))
			defer inFlight.Add(-int64(len(f.Data)))
			for {
				m := most.Load()
				if now <= m || most.CompareAndSwap(m, now) {
					break
				}
			}
			time.Sleep(200 * time.Millisecond) // the bubble's time: the slow analyzer itself
			return nil
		}}
		const limit = 64 << 10
		from := open(t, collector.Config{Bus: b, InFlightBytes: limit, MaxWait: time.Second})
		var ok, refused atomic.Int64
		const senders, each = 100, 100
		done := make(chan struct{})
		for i := range senders {
			go func() {
				p := from.Packer()
				for j := range each {
					p.Add(span(i*each + j))
				}
				switch r := collector.AsRefusal(from.Send(t.Context(), p)); {
				case r == nil:
					ok.Add(each)
				case r.Reason == collector.Overloaded:
					refused.Add(each)
				}
				done <- struct{}{}
			}()
		}
		for range senders {
			<-done
		}
		if most.Load() > limit {
			t.Errorf("%d bytes in flight, limit %d", most.Load(), limit)
		}
		if ok.Load() == 0 || refused.Load() == 0 || ok.Load()+refused.Load() != senders*each {
			t.Errorf("ok %d, refused %d", ok.Load(), refused.Load())
		}
		if got := int64(len(b.Spans())); got != ok.Load() {
			t.Errorf("%d analysed, %d answered OK", got, ok.Load())
		}
		c := from.Counts()
		if c.Received != senders*each || c.Received != c.Accepted+c.Rejected[collector.Overloaded] {
			t.Errorf("%+v", c)
		}
		// room came back
		p := from.Packer()
		p.Add(span(1))
		if err := from.Send(t.Context(), p); err != nil {
			t.Error(err)
		}
	})
}

func TestARequestLargerThanTheBoundPassesAlone(t *testing.T) {
	b := &spantest.Bus{}
	from := open(t, collector.Config{Bus: b, InFlightBytes: 100})
	p := from.Packer()
	for i := range 1000 {
		p.Add(span(i))
	}
	if err := from.Send(t.Context(), p); err != nil {
		t.Fatal(err)
	}
}

func TestASenderThatGivesUpLeavesItsPlaceInTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		b := &spantest.Bus{Handle: func(context.Context, *trimtab.SpanFrame) error { <-hold; return nil }}
		from := open(t, collector.Config{Bus: b, InFlightBytes: 100, MaxWait: time.Hour, AnswerTimeout: 2 * time.Hour})
		send := func(ctx context.Context, result chan<- error) {
			p := from.Packer()
			p.Add(span(0))
			result <- from.Send(ctx, p)
		}
		first, second, third := make(chan error, 1), make(chan error, 1), make(chan error, 1)
		go send(t.Context(), first)
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		go send(ctx, second)
		synctest.Wait()
		cancel()
		if r := collector.AsRefusal(<-second); r == nil || r.Reason != collector.Overloaded {
			t.Error("a sender that gave up was served")
		}
		go send(t.Context(), third)
		synctest.Wait()
		close(hold)
		if err := errors.Join(<-first, <-third); err != nil {
			t.Error(err)
		}
	})
}

func TestTheResourceCacheIsBoundedAndRemembersWhatIsUsed(t *testing.T) {
	var c collector.ResourceCache
	decoded := map[string]int{}
	get := func(raw string) *collector.Resource {
		r, err := c.Get([]byte(raw), func(raw []byte) (*collector.Resource, error) {
			decoded[string(raw)]++
			return resource(string(raw)), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for i := range 50_000 {
		get(fmt.Sprint("new", i))
		get("old friend")
		if c.Len() > 2*4096+2 {
			t.Fatalf("%d entries", c.Len())
		}
	}
	if decoded["old friend"] != 1 {
		t.Errorf("decoded %d times", decoded["old friend"])
	}
	big := strings.Repeat("b", 17<<10)
	before := c.Len()
	if get(big); c.Len() != before {
		t.Error("a resource of 17 KiB was kept")
	}
	broken := errors.New("broken")
	if _, err := c.Get([]byte("bad"), func([]byte) (*collector.Resource, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Error(err)
	}
}

func TestResourcesAreBounded(t *testing.T) {
	attrs := []trimtab.Attr{{Key: "", Value: "x"}, {Key: strings.Repeat("k", 257), Value: "x"}, {Key: "long", Value: strings.Repeat("v", 1025)}, {Key: "service.name", Value: "cart"}}
	want := []trimtab.Attr{{Key: "service.name", Value: "cart"}}
	if d := cmp.Diff(want, codec.UnpackResource(collector.NewResource(attrs).Packed())); d != "" {
		t.Error(d)
	}
	for range 1000 {
		attrs = append(attrs, trimtab.Attr{Key: strings.Repeat("k", 256), Value: strings.Repeat("v", 1024)})
	}
	if n := len(collector.NewResource(attrs).Packed()); n > 16<<10+2 {
		t.Errorf("%d bytes", n)
	}
}

func TestAConfigThatMakesNoSenseIsInvalid(t *testing.T) {
	set, b := metric.NewSet(), &spantest.Bus{}
	for _, c := range []collector.Config{{}, {Bus: b}, {Metrics: set}, {Bus: b, Metrics: set, Partitions: -1}, {Bus: b, Metrics: set, Partitions: 500},
		{Bus: b, Metrics: set, InFlightBytes: -1}, {Bus: b, Metrics: set, MaxWait: -1}, {Bus: b, Metrics: set, AnswerTimeout: -1}} {
		if _, err := collector.Open(c); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestOnlyAReadableThresholdAdjustsACount(t *testing.T) {
	for state, want := range map[string]trimtab.Span{
		"ot=th:8": {Adjusted: 2, Flags: trimtab.FlagAdjusted}, "a=b, ot=rv:6e6d1a75832a2f;th:c": {Adjusted: 4, Flags: trimtab.FlagAdjusted},
		"ot=th:0": {Adjusted: 1, Flags: trimtab.FlagAdjusted}, "ot=th:": {Adjusted: 1}, "ot=th:C": {Adjusted: 1}, "ot=th:x": {Adjusted: 1},
		"ot=th:123456789abcdef": {Adjusted: 1}, "x=th:8": {Adjusted: 1}, "ot=p:8;r:62": {Adjusted: 256, Flags: trimtab.FlagAdjusted}, "ot=r:5;p:3": {Adjusted: 8, Flags: trimtab.FlagAdjusted}, "ot=p:0": {Adjusted: 1, Flags: trimtab.FlagAdjusted}, "ot=p:3;th:8": {Adjusted: 2, Flags: trimtab.FlagAdjusted},
		"ot=p:63;r:63": {Adjusted: 1}, "ot=p:9;r:8": {Adjusted: 1}, "ot=p:-1": {Adjusted: 1}, "ot=p:008": {Adjusted: 1}, "ot=p:x": {Adjusted: 1}, "p:3": {Adjusted: 1}, "ot=th:-8": {Adjusted: 1}, "": {Adjusted: 1},
	} {
		s := trimtab.Span{Adjusted: 1}
		if collector.ApplyTraceState([]byte(state), &s); s != want {
			t.Errorf("%q: %+v", state, s)
		}
	}
}

func TestTimesSaturate(t *testing.T) {
	const most, least = 1<<63 - 1, -1 << 63
	for _, c := range [][3]int64{{1, 2, 3}, {most, 1, most}, {least, -1, least}, {5, -7, -2}, {most, 0, most}} {
		if got := collector.AddTimes(c[0], c[1]); got != c[2] {
			t.Errorf("%d + %d = %d", c[0], c[1], got)
		}
	}
}
