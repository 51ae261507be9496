package machines

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/trial"
	"pgregory.net/rapid"
)

// truth is what the aggregator published in one message.
type truth struct{ life, version uint64 }

// network is an aggregator, job managers, and all messages that were ever
// sent: each may arrive never, once or often, at any time.
type network struct {
	*rapid.T
	rng        *rand.Rand
	life       uint64
	publisher  *Publisher
	ids        []string
	candidates []string
	views      []*View
	// heardLast says which views have heard the newest message.
	heardLast []bool
	last      []byte
	published map[truth][]string
	sent      [][]byte
	requests  [][]byte
	born      int
}

func openNetwork(t *rapid.T) *network {
	n := &network{T: t, rng: draw(t), published: map[truth][]string{}}
	for range 3 {
		v, err := NewView(time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		n.views, n.heardLast = append(n.views, v), append(n.heardLast, false)
	}
	n.restart(t)
	return n
}

// restart begins another life, which knows nothing of the one before.
func (n *network) restart(t *rapid.T) {
	n.life++
	p, err := NewPublisher(n.life)
	if err != nil {
		t.Fatal(err)
	}
	n.publisher = p
	n.publish(t)
}

// publish chooses candidates and says them to nobody yet.
func (n *network) publish(t *rapid.T) {
	var at []uint32
	n.candidates = nil
	for i, id := range n.ids {
		if n.rng.IntN(4) == 0 {
			at, n.candidates = append(at, uint32(i)), append(n.candidates, id)
		}
	}
	n.rng.Shuffle(len(at), func(i, j int) { at[i], at[j] = at[j], at[i] })
	b, err := n.publisher.Update(n.ids, at)
	if err != nil {
		t.Fatal(err)
	}
	n.last = b
	n.sent = append(n.sent, b)
	_, version := n.publisher.Versions()
	n.published[truth{n.life, version}] = n.candidates
	clear(n.heardLast)
}

func (n *network) join(t *rapid.T) {
	for range n.rng.IntN(20) {
		n.born++
		n.ids = slices.Insert(slices.Clone(n.ids), n.rng.IntN(len(n.ids)+1), fmt.Sprint("machine-", n.born))
	}
	n.publish(t)
}

func (n *network) leave(t *rapid.T) {
	n.ids = slices.DeleteFunc(slices.Clone(n.ids), func(string) bool { return n.rng.IntN(5) == 0 })
	n.publish(t)
}

// arrive delivers any message that was ever sent.
func (n *network) arrive(t *rapid.T) {
	i := n.rng.IntN(len(n.views))
	n.deliver(t, i, n.sent[n.rng.IntN(len(n.sent))])
}

// arriveLast delivers the newest one, whatever came before.
func (n *network) arriveLast(t *rapid.T) {
	i := n.rng.IntN(len(n.views))
	n.deliver(t, i, n.last)
	n.heardLast[i] = true
}

func (n *network) deliver(t *rapid.T, i int, b []byte) {
	if err := n.views[i].Receive(start(), b); err != nil && !errors.Is(err, trimtab.ErrStale) {
		t.Fatal(err)
	}
}

// ask sends a request of a view, at once or after others; some are lost.
func (n *network) ask(t *rapid.T) {
	v := n.views[n.rng.IntN(len(n.views))]
	n.requests = append(n.requests, v.Request())
	b, err := n.publisher.Answer(n.requests[n.rng.IntN(len(n.requests))])
	if err != nil {
		t.Fatal(err)
	}
	if b != nil {
		n.sent = append(n.sent, b)
	}
}

func (n *network) damage(t *rapid.T) {
	b := slices.Clone(n.sent[n.rng.IntN(len(n.sent))])
	b[n.rng.IntN(len(b))] ^= byte(1 << n.rng.IntN(8))
	if err := n.views[0].Receive(start(), b[:n.rng.IntN(len(b))+1]); !errors.Is(err, trimtab.ErrInvalid) {
		t.Fatalf("a damaged message: %v", err)
	}
}

func (n *network) check(t *rapid.T) {
	for i, v := range n.views {
		names, known := v.Candidates(start())
		if known {
			if want := n.published[truth{v.newest.list.life, v.newest.version}]; !slices.Equal(names, want) {
				t.Fatalf("view %d: %q, published as %v: %q", i, names, &v.newest, want)
			}
		}
		if n.heardLast[i] && !v.MustAsk() && (!known || !slices.Equal(names, n.candidates)) {
			t.Fatalf("view %d has heard the last message and does not ask, but has %q, known %v; want %q", i, names, known, n.candidates)
		}
	}
}

func TestWhoHasHeardTheLastMessageKnowsTheCandidatesOrThatItMustAsk(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := openNetwork(t)
		actions := []func(*rapid.T){n.restart, n.publish, n.publish, n.join, n.leave, n.ask, n.ask, n.arriveLast, n.arriveLast, n.damage}
		for range 300 {
			if k := n.rng.IntN(2 * len(actions)); k < len(actions) {
				actions[k](t)
			} else {
				n.arrive(t)
			}
			n.check(t)
		}
		for i, v := range n.views { // in quiet times one request is enough
			n.deliver(t, i, n.last)
			b, err := n.publisher.Answer(v.Request())
			if err != nil || v.MustAsk() != (b != nil) {
				t.Fatalf("must ask %v, answer of %d bytes, %v", v.MustAsk(), len(b), err)
			}
			if b != nil {
				n.deliver(t, i, b)
			}
			names, known := v.Candidates(start())
			if !known || !slices.Equal(names, n.candidates) {
				t.Fatalf("view %d: %q, known %v; want %q", i, names, known, n.candidates)
			}
		}
	})
}

func publish(t testing.TB, p *Publisher, ids []string, candidates ...uint32) []byte {
	t.Helper()
	b, err := p.Update(ids, candidates)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func newPublisher(t testing.TB, life uint64) *Publisher {
	t.Helper()
	p, err := NewPublisher(life)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func newView(t testing.TB) *View {
	t.Helper()
	v, err := NewView(time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func receive(t testing.TB, v *View, at time.Duration, b []byte) {
	t.Helper()
	if err := v.Receive(start().Add(at), b); err != nil {
		t.Fatal(err)
	}
}

func TestVersionsChangeWithWhatTheyAreOf(t *testing.T) {
	p, ids := newPublisher(t, 1), manyIDs(3)
	for _, c := range []struct {
		ids        []string
		candidates []uint32
		machines   uint64
		version    uint64
	}{{ids, nil, 1, 1}, {ids, nil, 1, 1}, {ids, []uint32{2, 0}, 1, 2}, {ids, []uint32{0, 2}, 1, 2}, {ids[:2], []uint32{0}, 2, 3}, {ids, []uint32{0}, 3, 4}} {
		publish(t, p, c.ids, c.candidates...)
		if m, v := p.Versions(); m != c.machines || v != c.version {
			t.Fatalf("%+v: ver_m %d, ver_c %d", c, m, v)
		}
	}
}

func TestARestartedAggregatorWithTheSameListNeedNotSendItAgain(t *testing.T) {
	v, ids := newView(t), manyIDs(100)
	p := newPublisher(t, 1)
	publish(t, p, ids, 7)
	receive(t, v, 0, p.Full())
	p = newPublisher(t, 2)
	receive(t, v, 0, publish(t, p, ids, 8))
	if names, ok := v.Candidates(start()); !ok || !slices.Equal(names, ids[8:9]) || v.MustAsk() {
		t.Fatalf("%q, known %v, must ask %v", names, ok, v.MustAsk())
	}
	receive(t, v, 0, publish(t, p, ids[1:], 8))
	if _, ok := v.Candidates(start()); ok || !v.MustAsk() {
		t.Fatal("the list is another")
	}
}

func TestAnAggregatorThatWasSetBackIsBelievedAfterTheTimeout(t *testing.T) {
	v, ids := newView(t), manyIDs(10)
	p := newPublisher(t, 9)
	publish(t, p, ids, 1)
	receive(t, v, 0, p.Full())
	back := publish(t, newPublisher(t, 3), ids, 2)
	if err := v.Receive(start().Add(time.Minute), back); !errors.Is(err, trimtab.ErrStale) {
		t.Fatal(err)
	}
	receive(t, v, time.Minute+1, back)
	if names, ok := v.Candidates(start().Add(time.Minute + 1)); !ok || names[0] != ids[2] {
		t.Fatalf("%q, known %v", names, ok)
	}
}

func TestCandidatesOfWhichNothingIsHeardCountNoLonger(t *testing.T) {
	v, p := newView(t), newPublisher(t, 1)
	publish(t, p, manyIDs(10), 1)
	receive(t, v, 0, p.Full())
	for at, want := range map[time.Duration]bool{0: true, time.Minute: true, time.Minute + 1: false, -1: false} {
		if _, ok := v.Candidates(start().Add(at)); ok != want {
			t.Errorf("after %v: known %v", at, ok)
		}
	}
	receive(t, v, time.Hour, publish(t, p, manyIDs(10), 1)) // the same again is the sign of life
	if _, ok := v.Candidates(start().Add(time.Hour)); !ok {
		t.Error("not known after a sign of life")
	}
}

func TestVersionsThatEndBeginAnotherLife(t *testing.T) {
	p, v := newPublisher(t, 1), newView(t)
	publish(t, p, manyIDs(3), 0)
	p.now.version = math.MaxUint64
	receive(t, v, 0, p.Full())
	receive(t, v, 0, publish(t, p, manyIDs(3), 1))
	if m, c := p.Versions(); m != 1 || c != 1 || v.newest.list.life != 2 {
		t.Fatalf("ver_m %d, ver_c %d, life %d", m, c, v.newest.list.life)
	}
	if names, ok := v.Candidates(start()); !ok || names[0] != manyIDs(3)[1] {
		t.Fatalf("%q, known %v", names, ok)
	}
}

func TestWhatCannotBePublishedIsRefusedAndChangesNothing(t *testing.T) {
	p := newPublisher(t, 1)
	publish(t, p, []string{"a", "b"}, 1)
	for _, c := range []struct {
		ids        []string
		candidates []uint32
	}{{[]string{"a", "a"}, nil}, {[]string{""}, nil}, {[]string{"a"}, []uint32{1}}, {[]string{"a", "b"}, []uint32{1, 1}}} {
		if _, err := p.Update(c.ids, c.candidates); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if m, v := p.Versions(); m != 1 || v != 1 {
		t.Fatalf("ver_m %d, ver_c %d", m, v)
	}
	for _, life := range []uint64{0, 1 << 63} {
		if _, err := NewPublisher(life); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("life %d: %v", life, err)
		}
	}
	if _, err := NewView(0); !errors.Is(err, trimtab.ErrInvalid) {
		t.Error(err)
	}
}

func TestAMessageOfAnotherKindIsRefused(t *testing.T) {
	p, v := newPublisher(t, 1), newView(t)
	b := publish(t, p, manyIDs(3), 0)
	if _, err := p.Answer(b); !errors.Is(err, trimtab.ErrInvalid) {
		t.Error(err)
	}
	if err := v.Receive(start(), v.Request()); !errors.Is(err, trimtab.ErrInvalid) {
		t.Error(err)
	}
}

func TestVectorsComeBackAsTheyWere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := draw(t)
		n, density := rng.IntN(3000), rng.Float64()*rng.Float64()
		var ones []uint32
		for i := range n {
			if rng.Float64() < density {
				ones = append(ones, uint32(i))
			}
		}
		b := appendVector(nil, n, ones)
		if most := 1 + 3 + (n+7)/8; len(b) > most {
			t.Fatalf("%d ones of %d take %d bytes, the bits alone %d", len(ones), n, len(b), most)
		}
		got, rest, err := readVector(append(b, 1, 2, 3), n)
		if err != nil || !slices.Equal(got, ones) || len(rest) != 3 {
			t.Fatalf("%v, %d bytes left, %v; want %v", got, len(rest), err, ones)
		}
	})
}

// traffic is what 5,000 job managers and the aggregator send each other.
type traffic struct{ syncs [5]int }

// measure plays five rounds with n machines, of which a tenth are candidates,
// chosen afresh each time, and adds up the bytes of all messages.
func measure(t testing.TB, n, managers int) (out traffic) {
	rng := rand.New(rand.NewPCG(uint64(n), 5))
	ids, p := make([]string, n), newPublisher(t, uint64(start().UnixNano()))
	for i := range ids {
		ids[i] = fmt.Sprintf("node%05d.dc1", i)
	}
	views := make([]*View, managers)
	for i := range views {
		views[i] = newView(t)
	}
	for round := range out.syncs {
		var candidates []uint32
		var want []string
		for _, i := range rng.Perm(n)[:n/10] {
			candidates = append(candidates, uint32(i))
		}
		slices.Sort(candidates)
		for _, i := range candidates {
			want = append(want, ids[i])
		}
		b := publish(t, p, ids, candidates...)
		for _, v := range views {
			out.syncs[round] += len(b)
			receive(t, v, time.Duration(round), b)
			if v.MustAsk() {
				request := v.Request()
				full, err := p.Answer(request)
				if err != nil {
					t.Fatal(err)
				}
				out.syncs[round] += len(request) + len(full)
				receive(t, v, time.Duration(round), full)
			}
			if names, ok := v.Candidates(start().Add(time.Duration(round))); !ok || !slices.Equal(names, want) {
				t.Fatalf("round %d: known %v, %d candidates", round, ok, len(names))
			}
			v.named = nil
		}
	}
	return out
}

func TestSecondAndLaterSyncsTakeAtMostAHundredthOfTheFirst(t *testing.T) {
	for _, n := range []int{1_000, 5_000} {
		managers := trial.Some(1_000, 5_000)
		if testing.Short() {
			managers = 50
		}
		got := measure(t, n, managers)
		t.Logf("%d machines, %d job managers: %d bytes, then %v (%.2f%%)", n, managers, got.syncs[0], got.syncs[1:], 100*float64(got.syncs[1])/float64(got.syncs[0]))
		for round, bytes := range got.syncs[1:] {
			if 100*bytes > got.syncs[0] {
				t.Errorf("%d machines: sync %d takes %d bytes, more than 1%% of %d", n, round+2, bytes, got.syncs[0])
			}
		}
	}
}

// hostile are messages that claim more than they have.
func hostile() map[string][]byte {
	head := func(kind byte, n uint64, rest ...byte) []byte {
		b := binary.AppendUvarint(append([]byte{kind, 1, 1}, make([]byte, 8)...), n)
		return seal(append(append(b, 1), rest...))
	}
	huge := binary.AppendUvarint(nil, MaxMachines)
	return map[string][]byte{
		"as many ones as machines":    head(kindCandidates, MaxMachines, append([]byte{formRice}, huge...)...),
		"all bits, and none there":    head(kindCandidates, MaxMachines, append([]byte{formBits}, huge...)...),
		"a gap without an end":        head(kindCandidates, MaxMachines, append([]byte{formRice + mostRice, 1}, bytes.Repeat([]byte{255}, 2000)...)...),
		"ones in the bits behind it":  head(kindCandidates, MaxMachines, append([]byte{formRice, 64}, make([]byte, 8)...)...),
		"as many names":               head(kindFull, MaxMachines, formRice, 0),
		"more machines than can be":   head(kindFull, 1<<40, formRice, 0),
		"names without an end":        head(kindFull, 4, append([]byte{formRice, 0}, bytes.Repeat([]byte{253}, 200)...)...),
		"an unknown form of the bits": head(kindCandidates, 8, 99, 1, 1),
		"a one beyond the machines":   head(kindCandidates, 3, formBits, 1, 8),
		"fewer ones than it says":     head(kindCandidates, 3, formBits, 2, 1),
		"a number without an end":     seal(append([]byte{kindCandidates}, bytes.Repeat([]byte{255}, 30)...)),
	}
}

func TestAMessageCostsNoMoreThanItsBytesJustify(t *testing.T) {
	for name, b := range hostile() {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		m, err := decode(b)
		runtime.ReadMemStats(&after)
		took := after.TotalAlloc - before.TotalAlloc
		if took > uint64(40*len(b)+4096) {
			t.Errorf("%s: %d bytes for a message of %d", name, took, len(b))
		}
		if !errors.Is(err, trimtab.ErrInvalid) && name != "ones in the bits behind it" {
			t.Errorf("%s: %v, %v", name, m, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	p, v := newPublisher(f, 1), newView(f)
	f.Add(v.Request())
	f.Add(publish(f, p, manyIDs(40), 1, 2, 39))
	f.Add(p.Full())
	f.Add(publish(f, p, manyIDs(4), 0, 1, 2))
	for _, b := range hostile() {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if len(body) > 4 { // nobody would find a checksum by chance
			body = seal(slices.Clone(body[:len(body)-4]))
		}
		m, err := decode(body)
		if err == nil && 4*cap(m.candidates)+16*cap(m.ids) > 40*len(body) {
			t.Fatalf("%d candidates, %d names of a message of %d bytes", cap(m.candidates), cap(m.ids), len(body))
		}
		if err != nil {
			if !errors.Is(err, trimtab.ErrInvalid) {
				t.Fatal(err)
			}
			return
		}
		again, err := decode(m.encode())
		if err != nil || again.list != m.list || again.version != m.version || !slices.Equal(again.candidates, m.candidates) || !slices.Equal(again.ids, m.ids) {
			t.Fatalf("%v comes back as %v, %v", m, again, err)
		}
		_ = newView(t).Receive(start(), body)
		_, _ = p.Answer(body)
	})
}

func BenchmarkPublish(b *testing.B) {
	for _, n := range []int{1_000, 5_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			p, ids := newPublisher(b, 1), manyIDs(n)
			var sets [2][]uint32
			for i := range n {
				if i%10 < 2 {
					sets[i%10] = append(sets[i%10], uint32(i))
				}
			}
			i := 0
			for b.Loop() {
				i++
				message := publish(b, p, ids, sets[i%2]...)
				b.ReportMetric(float64(len(message)), "bytes")
			}
		})
	}
}
