package bustest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/codec"
)

func shedOnce(c *contract) {
	var in, other inbox
	defer c.subscribe(bus.Subscription{Kind: trimtab.KindSample, Handle: in.handle})()
	defer c.subscribe(bus.Subscription{Kind: trimtab.KindSample, Handle: other.handle})()
	var want []string
	for i := range 200 {
		c.publish(sample("w", fmt.Sprint(i)))
		want = append(want, fmt.Sprint(i))
	}
	for _, i := range []*inbox{&in, &other} {
		c.eventually("all samples arrive", func() bool { return i.len() >= len(want) })
		if got := i.names(); got != strings.Join(want, " ") {
			c.Errorf("got %s", got)
		}
	}
	if n := c.Stats().Lost[trimtab.KindSample]; n != 0 {
		c.Errorf("lost %d, but all arrived", n)
	}
}

func shedLoss(c *contract) {
	release := make(chan struct{})
	var delivered atomic.Int64
	var last atomic.Value
	defer c.subscribe(bus.Subscription{Kind: trimtab.KindSample, Handle: func(_ context.Context, d bus.Delivery) error {
		if delivered.Add(1) == 1 {
			<-release
		}
		last.Store(nameOf(d.Value))
		return nil
	}})()
	// More than any queue can hold, while the handler is blocked. Large values that do not
	// compress, so that limits in bytes are reached as well.
	random := rand.New(rand.NewPCG(1, 2))
	const n = 3000
	for i := range n {
		v := sample("w", fmt.Sprint(i))
		large := make([]byte, 4096)
		for j := range large {
			large[j] = byte('A' + random.IntN(26))
		}
		v.Missing, v.Value = string(large), 0
		c.publish(v)
	}
	close(release)
	// A gap shows only when a later value arrives, which may be dropped, too: publish one more,
	// and later others, at growing intervals.
	published, asked, next := n, 0, 1
	c.eventually("what was delivered and lost adds up to what was published", func() bool {
		if asked++; asked == next {
			c.publish(sample("w", "more"))
			published, next = published+1, 2*next
		}
		return last.Load() == "more" && int(delivered.Load())+int(c.Stats().Lost[trimtab.KindSample]) == published
	})
	if c.Stats().Lost[trimtab.KindSample] == 0 {
		c.Error("nothing was shed: the test shows nothing")
	}
}

func answeredAfter(c *contract) {
	var handled atomic.Int64
	defer c.subscribe(bus.Subscription{Kind: trimtab.KindSpans, Consumer: "path", Handle: func(_ context.Context, d bus.Delivery) error {
		r, err := codec.ReadFrame(d.Value.(*trimtab.SpanFrame).Data)
		handled.Add(int64(r.Len()))
		return err
	}})()
	for i := range 50 {
		c.publish(frame(i))
		if n := handled.Load(); n != int64(i+1) {
			c.Fatalf("Publish %d returned when %d were handled", i+1, n)
		}
	}
}

func answeredError(c *contract) {
	defer c.subscribe(bus.Subscription{Kind: trimtab.KindSpans, Consumer: "path", Handle: func(_ context.Context, d bus.Delivery) error {
		if d.Value.(*trimtab.SpanFrame).Partition == 1 {
			return fmt.Errorf("over the\nlimit: %w", trimtab.ErrRefused)
		}
		return nil
	}})()
	err := c.Publish(c.Context(), frame(1))
	if !errors.Is(err, trimtab.ErrRefused) || !strings.Contains(err.Error(), "limit") {
		c.Errorf("got %v, want the handler's error", err)
	}
	c.publish(frame(2))
}

func answeredNobody(c *contract) {
	if err := c.Publish(c.Context(), frame(1)); !errors.Is(err, bus.ErrNoConsumer) {
		c.Errorf("got %v, want ErrNoConsumer", err)
	}
}

func answeredSlow(c *contract) {
	gate := make(chan struct{})
	var handled, returned atomic.Int64
	defer c.subscribe(bus.Subscription{Kind: trimtab.KindSpans, Consumer: "path", Handle: func(context.Context, bus.Delivery) error {
		<-gate
		handled.Add(1)
		return nil
	}})()
	const n = 32
	var wait sync.WaitGroup
	for i := range n {
		wait.Go(func() {
			if err := c.Publish(c.Context(), frame(i)); err != nil {
				c.Error(err)
			}
			returned.Add(1)
		})
	}
	for i := range int64(n) {
		if r := returned.Load(); r > i {
			c.Fatalf("%d publishers returned when %d values were handled", r, i)
		}
		gate <- struct{}{}
	}
	wait.Wait()
	if handled.Load() != n {
		c.Errorf("handled %d of %d", handled.Load(), n)
	}
}

func answeredStop(c *contract) {
	running, gate := make(chan struct{}, 64), make(chan struct{})
	stop := c.subscribe(bus.Subscription{Kind: trimtab.KindSpans, Consumer: "path", Handle: func(context.Context, bus.Delivery) error {
		running <- struct{}{}
		<-gate
		return nil
	}})
	answers := make(chan error, 8)
	for i := range 8 {
		go func() { answers <- c.Publish(c.Context(), frame(i)) }()
	}
	<-running
	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }()
	close(gate)
	<-stopped
	for range 8 {
		select {
		case err := <-answers:
			if err != nil && !errors.Is(err, bus.ErrNoConsumer) {
				c.Errorf("got %v, want nil or ErrNoConsumer", err)
			}
		case <-time.After(patience):
			c.Fatal("a publisher waits for a consumer that stopped")
		}
	}
}

func invalidRefused(c *contract) {
	var in inbox
	for _, k := range []trimtab.Kind{trimtab.KindSample, trimtab.KindAlert, trimtab.KindSpans} {
		defer c.subscribe(bus.Subscription{Kind: k, Handle: in.handle})()
	}
	bad := sample("w", "x")
	bad.Value = -1
	for _, v := range []trimtab.Value{bad, alert("", "x"), &trimtab.SpanFrame{Data: []byte("no")}, &trimtab.Leader{Pool: "p", Epoch: 1}} {
		if err := c.Publish(c.Context(), v); !errors.Is(err, trimtab.ErrInvalid) {
			c.Errorf("%s: got %v, want ErrInvalid", v.Kind(), err)
		}
	}
	c.publish(sample("w", "good"), alert("w", "good"), frame(7))
	c.eventually("the good ones arrive", func() bool { return in.len() >= 3 })
	if in.len() != 3 {
		c.Errorf("got %s", in.names())
	}
	stats := c.Stats()
	for _, k := range []trimtab.Kind{trimtab.KindSample, trimtab.KindAlert, trimtab.KindSpans} {
		if stats.Published[k] != 1 || stats.Unreadable[k] != 0 {
			c.Errorf("%s: %d published, %d unreadable", k, stats.Published[k], stats.Unreadable[k])
		}
	}
}

func anyKey(c *contract) {
	keys := []string{"a", "a.b", "a b", "*", ">", "a=2E", "é", "shop/checkout", strings.Repeat("k", 60)}
	boxes := make([]inbox, len(keys))
	var all inbox
	defer c.subscribe(bus.Subscription{Kind: trimtab.KindSample, Handle: all.handle})()
	for i, k := range keys {
		defer c.subscribe(bus.Subscription{Kind: trimtab.KindSample, Key: k, Handle: boxes[i].handle})()
		defer c.subscribe(bus.Subscription{Kind: trimtab.KindAlert, Key: k, Handle: boxes[i].handle})()
	}
	for _, k := range keys {
		c.publish(sample(k, "s:"+k), alert(k, "a:"+k))
	}
	for i, k := range keys {
		c.eventually("key "+k, func() bool { return boxes[i].len() >= 2 })
		if boxes[i].len() != 2 {
			c.Errorf("key %q got %s", k, boxes[i].names())
		}
	}
	c.eventually("all keys", func() bool { return all.len() == len(keys) })
}

func oneAtATime(c *contract) {
	var inside, total atomic.Int64
	handle := func(context.Context, bus.Delivery) error {
		if inside.Add(1) > 1 {
			c.Error("two handlers at a time")
		}
		total.Add(1)
		inside.Add(-1)
		return nil
	}
	for _, k := range []trimtab.Kind{trimtab.KindSpans, trimtab.KindAlert} {
		total.Store(0)
		stop := c.subscribe(bus.Subscription{Kind: k, Handle: handle})
		var wait sync.WaitGroup
		for i := range 8 {
			wait.Go(func() {
				for j := range 10 {
					var v trimtab.Value = frame(j)
					if k == trimtab.KindAlert {
						v = alert(fmt.Sprint(i), fmt.Sprint(j))
					}
					if err := c.Publish(c.Context(), v); err != nil {
						c.Error(err)
					}
				}
			})
		}
		wait.Wait()
		c.eventually("all are handled", func() bool { return total.Load() == 80 })
		stop()
	}
}

func originUnique(c *contract) {
	var in inbox
	for _, k := range []trimtab.Kind{trimtab.KindSample, trimtab.KindAlert, trimtab.KindSpans} {
		defer c.subscribe(bus.Subscription{Kind: k, Handle: in.handle})()
	}
	for range 5 {
		c.publish(sample("w", "x"), alert("w", "x"), frame(1), alert("v", "x"))
	}
	c.eventually("all arrive", func() bool { return in.len() == 20 })
	seen := map[trimtab.Origin]bool{}
	for _, d := range in.deliveries() {
		if d.Origin.Source == "" || d.Origin.Incarnation == 0 || d.Origin.Sequence == 0 || seen[d.Origin] {
			c.Errorf("%s has origin %+v, which is empty or not unique", d.Value.Kind(), d.Origin)
		}
		seen[d.Origin] = true
	}
}
