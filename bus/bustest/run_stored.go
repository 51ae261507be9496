package bustest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/codec"
)

func durableStored(c *contract) {
	c.publish(alert("w", "1"), alert("v", "2"))
	var in inbox
	defer c.subscribe(bus.Subscription{Kind: trimtab.KindAlert, History: true, Handle: in.handle})()
	c.eventually("history arrives", func() bool { return in.names() == "1 2" })
	for _, d := range in.deliveries() {
		if d.Stored.IsZero() || d.Again != 0 {
			c.Errorf("stored %v, again %d", d.Stored, d.Again)
		}
	}
}

func durableFromNow(c *contract) {
	c.publish(alert("w", "before"))
	var in inbox
	defer c.subscribe(bus.Subscription{Kind: trimtab.KindAlert, Handle: in.handle})()
	c.publish(alert("w", "after"))
	c.eventually("the new one arrives", func() bool { return in.names() == "after" })
}

func durableAgain(c *contract) {
	var in inbox
	var fails atomic.Int64
	defer c.subscribe(bus.Subscription{Kind: trimtab.KindAlert, Consumer: "planner", Handle: func(ctx context.Context, d bus.Delivery) error {
		if nameOf(d.Value) == "2" && fails.Add(1) <= 2 {
			return errors.New("not now")
		}
		return in.handle(ctx, d)
	}})()
	c.publish(alert("w", "1"), alert("w", "2"), alert("w", "3"))
	c.eventually("all are handled in order", func() bool { return in.names() == "1 2 3" })
	if d := in.deliveries()[1]; d.Again != 2 {
		c.Errorf("delivered again %d times, want 2", d.Again)
	}
	if n := c.Stats().Again[trimtab.KindAlert]; n != 2 {
		c.Errorf("counted %d redeliveries, want 2", n)
	}
}

func durableLimit(c *contract) {
	var in inbox
	var tries atomic.Int64
	defer c.subscribe(bus.Subscription{Kind: trimtab.KindAlert, Consumer: "planner", Handle: func(ctx context.Context, d bus.Delivery) error {
		if nameOf(d.Value) == "poison" {
			tries.Add(1)
			return errors.New("never")
		}
		return in.handle(ctx, d)
	}})()
	c.publish(alert("w", "poison"), alert("w", "next"))
	c.eventually("the next one is handled", func() bool { return in.names() == "next" })
	if tries.Load() < 2 {
		c.Errorf("given up after %d tries", tries.Load())
	}
	c.aside(1)
}

// aside checks the number of alerts that became dead letters, if the bus can report it.
func (c *contract) aside(want int) {
	c.Helper()
	i, ok := c.Bus.(Injector)
	if !ok {
		return
	}
	c.eventually(fmt.Sprintf("%d are put aside", want), func() bool { return len(i.Aside(trimtab.KindAlert)) == want })
}

// queue returns the queue of the subscription with that name.
func (c *contract) queue(name string) (q bus.Queue, aside uint64) {
	c.Helper()
	all, err := c.Queues(c.Context())
	c.must(err)
	for _, q := range all.Waiting {
		if q.For == name {
			return q, all.Aside[trimtab.KindAlert]
		}
	}
	return bus.Queue{}, all.Aside[trimtab.KindAlert]
}

func queuesTell(c *contract) {
	release, held := make(chan struct{}), make(chan struct{}, 1)
	var in inbox
	var refused atomic.Bool
	stop := c.subscribe(bus.Subscription{Kind: trimtab.KindAlert, For: "slow", Key: "w", Handle: func(ctx context.Context, d bus.Delivery) error {
		if nameOf(d.Value) == "held" {
			if refused.CompareAndSwap(false, true) {
				return errors.New("not now")
			}
			held <- struct{}{}
			<-release
		}
		return in.handle(ctx, d)
	}})
	defer stop()
	defer c.subscribe(bus.Subscription{Kind: trimtab.KindAlert, For: "quick", Handle: func(ctx context.Context, d bus.Delivery) error {
		if nameOf(d.Value) == "poison" {
			return trimtab.ErrInvalid
		}
		return nil
	}})()
	if q, aside := c.queue("slow"); q.Kind != trimtab.KindAlert || q.Waiting != 0 || !q.Oldest.IsZero() || aside != 0 {
		c.Errorf("before anything: %+v, %d aside", q, aside)
	}
	c.publish(alert("w", "held"), alert("w", "2"), alert("elsewhere", "poison"), alert("w", "3"))
	<-held
	c.eventually("three wait, one of them again", func() bool {
		q, _ := c.queue("slow")
		return q.Waiting == 3 && q.Again == 1 && !q.Oldest.IsZero()
	})
	c.eventually("nothing waits for the quick one, and the poison is aside", func() bool {
		q, aside := c.queue("quick")
		return q.Waiting == 0 && q.Oldest.IsZero() && aside == 1
	})
	close(release)
	c.eventually("nothing waits", func() bool { q, _ := c.queue("slow"); return q.Waiting == 0 && q.Again == 0 })
	if in.names() != "held 2 3" {
		c.Errorf("asking changed what is delivered: %s", in.names())
	}
	stop()
	if q, _ := c.queue("slow"); q.For != "" {
		c.Errorf("a subscription that ended is still told of: %+v", q)
	}
}

func durableGroup(c *contract) {
	const n = 60
	var mu sync.Mutex
	seen := map[string]int{}
	members := map[int]int{}
	gate := make(chan struct{})
	for member := range 2 {
		defer c.subscribe(bus.Subscription{Kind: trimtab.KindAlert, Consumer: "planner", Handle: func(_ context.Context, d bus.Delivery) error {
			<-gate
			mu.Lock()
			defer mu.Unlock()
			seen[nameOf(d.Value)]++
			members[member]++
			return nil
		}})()
	}
	for i := range n {
		c.publish(alert(fmt.Sprint(i), fmt.Sprint(i)))
	}
	close(gate)
	c.eventually("all are handled", func() bool { mu.Lock(); defer mu.Unlock(); return len(seen) == n })
	mu.Lock()
	defer mu.Unlock()
	for name, times := range seen {
		if times != 1 {
			c.Errorf("value %s reached %d members", name, times)
		}
	}
	if len(members) < 2 {
		c.Logf("one member did all the work: %v", members)
	}
}

func durableGoesOn(c *contract) {
	var first, second inbox
	s := bus.Subscription{Kind: trimtab.KindAlert, Consumer: "planner", Handle: first.handle}
	c.publish(alert("w", "0"))
	stop := c.subscribe(s)
	c.publish(alert("w", "1"), alert("w", "2"))
	c.eventually("a new group starts with what is stored", func() bool { return first.names() == "0 1 2" })
	stop()
	c.publish(alert("w", "3"), alert("w", "4"))
	s.Handle = second.handle
	defer c.subscribe(s)()
	c.eventually("the group goes on", func() bool { return second.names() == "3 4" })
	if first.len() != 3 {
		c.Errorf("a stopped subscriber got %s", first.names())
	}
}

func durableTooOld(c *contract) {
	s := bus.Subscription{Kind: trimtab.KindAlert, Consumer: "g", Key: "a", MaxAge: time.Second}
	// joins subscribes where one value is too old and another new. On a busy machine the new one
	// may be too old as well by then: it tries again.
	joins := func() (in *inbox, stop func()) {
		for {
			c.publish(alert("a", "old"), alert("b", "old"))
			time.Sleep(s.MaxAge + 100*time.Millisecond)
			began := time.Now()
			c.publish(alert("a", "new"))
			in = new(inbox)
			s.Handle = in.handle
			if stop = c.subscribe(s); time.Since(began) < s.MaxAge {
				return in, stop
			}
			stop()
		}
	}
	for range 2 { // it begins, then it goes on
		in, stop := joins()
		c.eventually("what is new arrives", func() bool { return in.len() > 0 })
		c.publish(alert("a", "newer"))
		c.eventually("nothing else does", func() bool { return in.names() == "new newer" })
		stop()
	}
	// What is not old is not passed over, however often it is joined.
	c.publish(alert("a", "1"), alert("a", "2"))
	s.MaxAge = time.Hour
	var in inbox
	s.Handle = in.handle
	defer c.subscribe(s)()
	c.eventually("it goes on where it stopped", func() bool { return in.names() == "1 2" })
}

func durableKeys(c *contract) {
	var a, b inbox
	defer c.subscribe(bus.Subscription{Kind: trimtab.KindAlert, Consumer: "g", Key: "a", Handle: a.handle})()
	defer c.subscribe(bus.Subscription{Kind: trimtab.KindAlert, Consumer: "g", Key: "b", Handle: b.handle})()
	c.publish(alert("a", "1"), alert("b", "2"), alert("a", "3"), alert("c", "4"))
	c.eventually("each gets its key", func() bool { return a.names() == "1 3" && b.names() == "2" })
}

func latestFirst(c *contract) {
	for i := range 5 {
		for _, w := range []string{"a", "b", "c.d"} {
			c.publish(estimate(w, fmt.Sprint(w, i)))
		}
	}
	var in, group inbox
	defer c.subscribe(bus.Subscription{Kind: trimtab.KindEstimate, Handle: in.handle})()
	defer c.subscribe(bus.Subscription{Kind: trimtab.KindEstimate, Consumer: "g", Handle: group.handle})()
	for _, i := range []*inbox{&in, &group} {
		c.eventually("the last of each key arrives first", func() bool { return i.names() == "a4 b4 c.d4" })
	}
	c.publish(estimate("b", "b5"))
	for _, i := range []*inbox{&in, &group} {
		c.eventually("then what is new", func() bool { return i.names() == "a4 b4 c.d4 b5" })
	}
}

func unreadable(c *contract) {
	raw, ok := c.Bus.(Injector)
	if !ok {
		c.Skip("this bus has no way to inject raw bytes")
	}
	var in inbox
	kinds := []trimtab.Kind{trimtab.KindAlert, trimtab.KindSample, trimtab.KindSpans}
	for _, k := range kinds {
		defer c.subscribe(bus.Subscription{Kind: k, Handle: in.handle})()
	}
	wrongKey, err := codec.Encode(alert("other", "x"), trimtab.Origin{})
	c.must(err)
	bad := [][]byte{nil, []byte("{"), []byte(`{"kind":"plan","version":1}`), []byte(`{"kind":"alert","version":99}`), wrongKey,
		[]byte(`{"kind":"sample","version":1,"value":{"workload":"w","value":1e999}}`), []byte(strings.Repeat("[", 10000))}
	for _, k := range kinds {
		for _, data := range bad {
			// The publisher of an unreadable span frame is told.
			if err := raw.Inject(c.Context(), k, "1", data); err != nil && k != trimtab.KindSpans {
				c.Error(err)
			}
		}
	}
	c.publish(alert("1", "good"), sample("1", "good"), frame(1))
	c.eventually("the good ones arrive", func() bool { return in.len() == 3 })
	for _, k := range kinds {
		if n := c.Stats().Unreadable[k]; n != uint64(len(bad)) {
			c.Errorf("%s: %d unreadable, want %d", k, n, len(bad))
		}
	}
	c.aside(len(bad))
}

func olderRead(c *contract) {
	raw, ok := c.Bus.(Injector)
	if !ok {
		c.Skip("this bus has no way to inject raw bytes")
	}
	var in inbox
	values := []trimtab.Value{alert("1", "old"), sample("1", "old")}
	for _, v := range values {
		defer c.subscribe(bus.Subscription{Kind: v.Kind(), Handle: in.handle})()
	}
	for _, v := range values {
		now, err := codec.Encode(v, trimtab.Origin{})
		c.must(err)
		before := bytes.Replace(now, fmt.Appendf(nil, `"version":%d`, codec.Version), []byte(`"version":1`), 1)
		c.must(raw.Inject(c.Context(), v.Kind(), "1", before))
		c.must(raw.Inject(c.Context(), v.Kind(), "1", now))
	}
	c.eventually("both versions arrive", func() bool { return in.len() == 2*len(values) })
	for _, v := range values {
		if s := c.Stats(); s.Older[v.Kind()] != 1 || s.Unreadable[v.Kind()] != 0 {
			c.Errorf("%s: %d older, %d unreadable, want 1 and 0", v.Kind(), s.Older[v.Kind()], s.Unreadable[v.Kind()])
		}
	}
}

func invalidHandling(c *contract) {
	var in inbox
	var tries atomic.Int64
	defer c.subscribe(bus.Subscription{Kind: trimtab.KindAlert, Consumer: "planner", Handle: func(ctx context.Context, d bus.Delivery) error {
		if nameOf(d.Value) == "poison" {
			tries.Add(1)
			return trimtab.Invalidf("it makes the step panic")
		}
		return in.handle(ctx, d)
	}})()
	c.publish(alert("w", "poison"), alert("w", "next"))
	c.eventually("the next one is handled", func() bool { return in.names() == "next" })
	if tries.Load() != 1 {
		c.Errorf("tried %d times, want 1", tries.Load())
	}
	c.aside(1)
}

func stopLeaves(c *contract) {
	running, told, gate := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var first, second inbox
	s := bus.Subscription{Kind: trimtab.KindAlert, Consumer: "planner", Handle: func(ctx context.Context, d bus.Delivery) error {
		close(running)
		<-ctx.Done() // ends when stop is called
		close(told)
		<-gate
		return first.handle(ctx, d)
	}}
	stop := c.subscribe(s)
	c.publish(alert("w", "1"), alert("w", "2"), alert("w", "3"))
	<-running
	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }()
	<-told
	select {
	case <-stopped:
		c.Error("stop returned while a handler was running")
	default:
	}
	close(gate)
	<-stopped
	if first.names() != "1" {
		c.Errorf("stop returned when %q was handled, want the running one", first.names())
	}
	s.Handle = second.handle
	defer c.subscribe(s)()
	// What was handled may come again, where its acknowledgement came late.
	c.eventually("the rest goes to the next subscriber", func() bool {
		rest := slices.DeleteFunc(strings.Fields(second.names()), func(name string) bool { return name == "1" })
		return slices.Equal(rest, []string{"2", "3"})
	})
}

func concurrent(c *contract) {
	var in inbox
	defer c.subscribe(bus.Subscription{Kind: trimtab.KindAlert, Consumer: "planner", Handle: in.handle})()
	const publishers, each = 8, 25
	var wait sync.WaitGroup
	for p := range publishers {
		wait.Go(func() {
			for i := range each {
				if err := c.Publish(c.Context(), alert(fmt.Sprint("w", p), fmt.Sprintf("%d-%d", p, i))); err != nil {
					c.Error(err)
				}
			}
		})
	}
	wait.Wait()
	c.eventually("all arrive", func() bool { return in.len() >= publishers*each })
	next := map[string]int{}
	for _, d := range in.deliveries() {
		a := d.Value.(*trimtab.Alert)
		if want := fmt.Sprintf("%s-%d", strings.TrimPrefix(a.Workload, "w"), next[a.Workload]); a.Name != want {
			c.Fatalf("workload %s: got %s, want %s", a.Workload, a.Name, want)
		}
		next[a.Workload]++
	}
}

func bucketSwaps(c *contract) {
	ctx := c.Context()
	k, err := c.Bucket(ctx, "leaders")
	c.must(err)
	if _, _, err := k.Get(ctx, "p"); !errors.Is(err, bus.ErrNotFound) {
		c.Errorf("absent key: %v, want ErrNotFound", err)
	}
	if _, err := k.Update(ctx, "p", []byte("x"), 7); !errors.Is(err, bus.ErrConflict) {
		c.Errorf("update of an absent key: %v, want ErrConflict", err)
	}
	r1, err := k.Update(ctx, "p", []byte("1"), 0)
	c.must(err)
	if _, err := k.Update(ctx, "p", []byte("2"), 0); !errors.Is(err, bus.ErrConflict) {
		c.Errorf("second creation: %v, want ErrConflict", err)
	}
	r2, err := k.Update(ctx, "p", []byte("2"), r1)
	c.must(err)
	if _, err := k.Update(ctx, "p", []byte("3"), r1); !errors.Is(err, bus.ErrConflict) {
		c.Errorf("update of an old revision: %v, want ErrConflict", err)
	}
	same, err := c.Bucket(ctx, "leaders")
	c.must(err)
	if v, r, err := same.Get(ctx, "p"); err != nil || string(v) != "2" || r != r2 {
		c.Errorf("got %q %d %v, want 2 %d", v, r, err, r2)
	}
	c.must(k.Delete(ctx, "p"))
	c.must(k.Delete(ctx, "p"))
	if _, _, err := k.Get(ctx, "p"); !errors.Is(err, bus.ErrNotFound) {
		c.Errorf("deleted key: %v, want ErrNotFound", err)
	}
	if _, err := k.Update(ctx, "p", []byte("4"), 0); err != nil {
		c.Errorf("creation after deletion: %v", err)
	}
	if _, err := c.Bucket(ctx, "no/such name"); !errors.Is(err, trimtab.ErrInvalid) {
		c.Errorf("bad name: %v, want ErrInvalid", err)
	}
}

func bucketWinner(c *contract) {
	k, err := c.Bucket(c.Context(), "leaders")
	c.must(err)
	for round := range 10 {
		_, r, err := k.Get(c.Context(), "p")
		if err != nil && !errors.Is(err, bus.ErrNotFound) {
			c.Fatal(err)
		}
		var winners atomic.Int64
		var wait sync.WaitGroup
		for i := range 4 {
			wait.Go(func() {
				switch _, err := k.Update(c.Context(), "p", []byte{byte(i)}, r); {
				case err == nil:
					winners.Add(1)
				case !errors.Is(err, bus.ErrConflict):
					c.Error(err)
				}
			})
		}
		wait.Wait()
		if winners.Load() != 1 {
			c.Fatalf("round %d: %d winners", round, winners.Load())
		}
	}
}

func bucketKeys(c *contract) {
	k, err := c.Bucket(c.Context(), "snapshots")
	c.must(err)
	if keys, err := k.Keys(c.Context()); err != nil || len(keys) != 0 {
		c.Errorf("empty bucket: %v %v", keys, err)
	}
	want := []string{"", " ", "*", "a.b", "learn/shop/é", "z"}
	for _, key := range want {
		_, err := k.Put(c.Context(), key, []byte("="+key))
		c.must(err)
	}
	keys, err := k.Keys(c.Context())
	c.must(err)
	if fmt.Sprintf("%q", keys) != fmt.Sprintf("%q", want) {
		c.Errorf("got %q, want %q", keys, want)
	}
	for _, key := range want {
		if v, _, err := k.Get(c.Context(), key); err != nil || string(v) != "="+key {
			c.Errorf("key %q: %q %v", key, v, err)
		}
	}
}
