package natsbus

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/s2"
	"github.com/nats-io/nats.go"
	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/codec"
	"github.com/trimtab/trimtab/quantity"
	"pgregory.net/rapid"
)

// sampleOf is a sample of a workload that can be told from others.
func sampleOf(workload string, n int) *trimtab.Sample {
	return &trimtab.Sample{Workload: workload, Quantity: quantity.Usage, Source: "test", Time: time.Unix(int64(n), 0).UTC(), Value: float64(n)}
}

// collected are the samples that arrived, by workload.
type collected struct {
	sync.Mutex
	of    map[string][]int
	total int
}

func (c *collected) handle(_ context.Context, d bus.Delivery) error {
	c.Lock()
	defer c.Unlock()
	s := d.Value.(*trimtab.Sample)
	c.of[s.Workload] = append(c.of[s.Workload], int(s.Value))
	c.total++
	return nil
}

// until waits for so many samples.
func (c *collected) until(t *testing.T, n int) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		c.Lock()
		total := c.total
		c.Unlock()
		if total >= n {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d samples arrived", total, n)
		}
	}
}

func TestSamplesThatArePublishedAtOnceTravelInFewMessages(t *testing.T) {
	const workloads, each = 40, 50
	b := open(t, Config{Listen: "127.0.0.1:0"})
	all, one := &collected{of: map[string][]int{}}, &collected{of: map[string][]int{}}
	subscribe := func(key string, c *collected) {
		stop, err := b.Subscribe(t.Context(), bus.Subscription{Kind: trimtab.KindSample, Key: key, Handle: c.handle})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(stop)
	}
	subscribe("", all)
	subscribe("w7", one)
	raw, err := b.conn.SubscribeSync("trimtab.sample.*")
	if err != nil {
		t.Fatal(err)
	}
	messages := 0
	for n := range each {
		for w := range workloads {
			if err := b.Publish(t.Context(), sampleOf(fmt.Sprintf("w%d", w), n)); err != nil {
				t.Fatal(err)
			}
		}
	}
	all.until(t, workloads*each)
	for looked := 0; looked < workloads*each; messages++ {
		m, err := raw.NextMsg(20 * time.Second)
		if err != nil {
			t.Fatalf("who looks on reads %d of %d samples: %v", looked, workloads*each, err)
		}
		if bad := Read(trimtab.KindSample, m, func(trimtab.Value, trimtab.Origin) { looked++ }); bad != nil {
			t.Error(bad)
		}
	}
	one.until(t, each)
	if messages > workloads*each/10 {
		t.Errorf("%d samples travelled in %d messages", workloads*each, messages)
	}
	for w, got := range all.of {
		if len(got) != each || !slices.IsSorted(got) {
			t.Errorf("%s: %d samples, in order %v, want %d in order", w, len(got), slices.IsSorted(got), each)
		}
	}
	if len(one.of) != 1 || len(one.of["w7"]) != each {
		t.Errorf("the subscriber to w7 got %v", one.of)
	}
	if lost := b.Stats().Lost[trimtab.KindSample]; lost != 0 {
		t.Errorf("%d counted as lost", lost)
	}
}

func TestASampleThatTravelsAloneCanBeReadByAPersonOnItsSubject(t *testing.T) {
	b := open(t, Config{Listen: "127.0.0.1:0"})
	raw, err := b.conn.SubscribeSync("trimtab.sample.checkout")
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Publish(t.Context(), sampleOf("checkout", 1)); err != nil {
		t.Fatal(err)
	}
	m, err := raw.NextMsg(10 * time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if v, _, err := codec.Decode(trimtab.KindSample, m.Data); err != nil || v.Key() != "checkout" {
		t.Errorf("it reads %v, %v", v, err)
	}
}

func TestTheValuesOfALostMessageAreAllCounted(t *testing.T) {
	t.Parallel()
	b := open(t, Config{Listen: "127.0.0.1:0"})
	all := &collected{of: map[string][]int{}}
	stop, err := b.Subscribe(t.Context(), bus.Subscription{Kind: trimtab.KindSample, Handle: all.handle})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	values := func(from, to int) (out []shed) {
		for n := from; n < to; n++ {
			data, err := codec.Encode(sampleOf("w", n), trimtab.Origin{})
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, shed{kindPrefix(trimtab.KindSample), "w", formatOrigin(trimtab.Origin{Source: "x", Incarnation: 1, Sequence: uint64(n)}, uint64(n)), data})
		}
		return out
	}
	for _, part := range [][]shed{values(1, 6), values(20, 31)} { // 6 to 19 are lost
		for _, m := range together(part) {
			if err := b.conn.PublishMsg(m); err != nil {
				t.Fatal(err)
			}
		}
	}
	all.until(t, 16)
	for deadline := time.Now().Add(20 * time.Second); b.Stats().Lost[trimtab.KindSample] != 14; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d counted as lost, want 14", b.Stats().Lost[trimtab.KindSample])
		}
	}
}

func TestAMessageOfManyThatIsNoneIsCountedAndStopsNobody(t *testing.T) {
	b := open(t, Config{Listen: "127.0.0.1:0"})
	all := &collected{of: map[string][]int{}}
	stop, err := b.Subscribe(t.Context(), bus.Subscription{Kind: trimtab.KindSample, Handle: all.handle})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	bad := []*nats.Msg{
		{Data: []byte("nothing")},
		{Data: []byte("w {}")},
		{Data: []byte("w o 1 1 1 {}\n")},
		{Data: []byte("=many o 1 1 1 {}\n")},
		{Header: nats.Header{headerEncoding: {encodingS2}}, Data: s2.Encode(nil, []byte("w o 1 1 1 "+strings.Repeat("{", maxBatchRead)+"\n"))},
		{Header: nats.Header{headerEncoding: {encodingS2}}, Data: []byte("\xff\xff\xff\xff\xff\xff")},
		{Header: nats.Header{headerEncoding: {"zip"}}, Data: []byte("x")},
	}
	for _, m := range bad {
		m.Subject = kindPrefix(trimtab.KindSample) + manyKey
		if err := b.conn.PublishMsg(m); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Publish(t.Context(), sampleOf("w", 1)); err != nil {
		t.Fatal(err)
	}
	all.until(t, 1)
	if got := b.Stats().Unreadable[trimtab.KindSample]; got != uint64(len(bad)) {
		t.Errorf("%d counted as unreadable, want %d", got, len(bad))
	}
}

func TestWhatTravelsTogetherComesApartAsItWas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []shed
		for i := range rapid.IntRange(0, 60).Draw(t, "values") {
			k := rapid.SampledFrom([]trimtab.Kind{trimtab.KindSample, trimtab.KindSketch}).Draw(t, "kind")
			key := bus.EscapeKey(rapid.String().Draw(t, "key"))
			o := trimtab.Origin{Source: rapid.String().Draw(t, "source"), Incarnation: 1, Sequence: uint64(i)}
			data := fmt.Appendf(nil, "{%q:%d}", strings.Repeat("x", rapid.IntRange(0, 20_000).Draw(t, "bytes")), i)
			all = append(all, shed{kindPrefix(k), key, formatOrigin(o, uint64(i)), data})
		}
		var got []shed
		for _, m := range together(all) {
			if key := m.Subject[strings.LastIndexByte(m.Subject, '.')+1:]; key != manyKey {
				got = append(got, shed{strings.TrimSuffix(m.Subject, key), key, m.Header.Get(headerOrigin), m.Data})
				continue
			}
			k := trimtab.Kind(strings.Split(m.Subject, ".")[1])
			if err := apart(k, m, func(v *shed) { got = append(got, *v) }); err != nil {
				t.Fatal(err)
			}
		}
		if len(got) != len(all) {
			t.Fatalf("%d came of %d", len(got), len(all))
		}
		for i := range all {
			if got[i].subject() != all[i].subject() || got[i].origin != all[i].origin || string(got[i].data) != string(all[i].data) {
				t.Fatalf("value %d: %v, want %v", i, got[i], all[i])
			}
		}
	})
}

func FuzzApart(f *testing.F) {
	f.Add([]byte("w o 1 1 1 {}\nv o 1 1 2 {\"a\":1}\n"), false)
	f.Add([]byte("\n"), true)
	f.Fuzz(func(t *testing.T, data []byte, packed bool) {
		m := &nats.Msg{Subject: kindPrefix(trimtab.KindSample) + manyKey, Header: nats.Header{}, Data: data}
		if packed {
			m.Header.Set(headerEncoding, encodingS2)
		}
		n := 0
		if err := apart(trimtab.KindSample, m, func(v *shed) { n += v.size() }); err == nil && n > maxBatchRead+3 {
			t.Errorf("%d bytes came of a message of at most %d", n, maxBatchRead)
		}
	})
}
