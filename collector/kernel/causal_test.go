package kernel

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
)

// world is a host with two components: front, process 1, which listens on port 80,
// and store, process 2, which does on 90.
type world struct {
	*Tracer
	got []Visit
	now int64
}

const settle = 100

func newWorld() *world {
	w := &world{}
	w.Tracer = NewTracer(settle, 1, func(process uint32, port uint16) bool {
		return process == 1 && port == 80 || process == 2 && port == 90
	},
		func(v *Visit) { w.got = append(w.got, *v) })
	return w
}

func at(port int) netip.AddrPort {
	return netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(port))
}

// event is one of a process (the component is one less), after some time.
func (w *world) event(after int64, process, thread uint32, sent bool, local, remote int) {
	w.now += after
	w.Add(int(process)-1, &Event{Time: w.now, Process: process, Thread: thread, Sent: sent, Bytes: 1, Local: at(local), Remote: at(remote)})
}

// settled ends everything, and returns the visits of a component.
func (w *world) settled() map[int][]Visit {
	w.Settle(w.now + settle)
	of := map[int][]Visit{}
	for _, v := range w.got {
		of[v.Component] = append(of[v.Component], v)
	}
	return of
}

const recv, send = false, true

func TestACallBelongsToTheRequestThatItsThreadReceivedLast(t *testing.T) {
	w := newWorld()
	w.event(10, 1, 7, recv, 80, 1000) // a request
	w.event(1, 1, 8, recv, 80, 1001)  // another, on another thread
	w.event(2, 1, 7, send, 2000, 90)  // the first calls store
	w.event(3, 2, 9, recv, 90, 2000)
	w.event(20, 2, 9, send, 90, 2000)
	w.event(1, 1, 7, recv, 2000, 90)
	w.event(4, 1, 7, send, 80, 1000)
	w.event(4, 1, 8, send, 80, 1001)
	of := w.settled()
	if len(of[0]) != 3 || len(of[1]) != 1 {
		t.Fatalf("%d and %d visits", len(of[0]), len(of[1]))
	}
	byKind := func(k trimtab.SpanKind, length int64) Visit {
		i := slices.IndexFunc(of[0], func(v Visit) bool { return v.Kind == k && v.End-v.Start == length })
		if i < 0 {
			t.Fatalf("no span of kind %d and length %d in %+v", k, length, of[0])
		}
		return of[0][i]
	}
	request, call, other := byKind(trimtab.SpanServer, 31), byKind(trimtab.SpanClient, 24), byKind(trimtab.SpanServer, 34)
	served := of[1][0]
	if call.Parent != request.SpanID || call.TraceID != request.TraceID || served.Parent != call.SpanID || served.TraceID != request.TraceID {
		t.Errorf("request %x, call of %x, served for %x, call is %x", request.SpanID, call.Parent, served.Parent, call.SpanID)
	}
	if other.TraceID == request.TraceID || other.Parent != [8]byte{} || request.Parent != [8]byte{} {
		t.Error("requests from processes that are not watched are not traces of their own")
	}
}

func TestACallOfAnotherThreadBelongsToTheRequestThatItsProcessReceivedLast(t *testing.T) {
	w := newWorld()
	w.event(10, 1, 7, recv, 80, 1000)
	w.event(1, 1, 8, send, 2000, 90)
	w.event(1, 1, 8, recv, 2000, 90)
	w.event(1, 1, 7, send, 80, 1000)
	of := w.settled()
	if len(of[0]) != 2 || of[0][0].TraceID != of[0][1].TraceID {
		t.Errorf("%+v", of[0])
	}
}

func TestTheNextRequestOnAConnectionEndsTheAnswerBefore(t *testing.T) {
	w := newWorld()
	for range 3 {
		w.event(5, 1, 7, recv, 80, 1000)
		w.event(1, 1, 7, recv, 80, 1000) // the rest of it
		w.event(2, 1, 7, send, 80, 1000)
		w.event(3, 1, 7, send, 80, 1000) // the rest of the answer
	}
	if len(w.got) != 2 {
		t.Errorf("%d requests have ended before the last, want 2", len(w.got))
	}
	for _, v := range w.settled()[0] {
		if v.End-v.Start != 6 {
			t.Errorf("%d long, want 6", v.End-v.Start)
		}
	}
	if len(w.got) != 3 {
		t.Errorf("%d requests, want 3", len(w.got))
	}
}

func TestARequestWithoutAnAnswerIsNoVisit(t *testing.T) {
	w := newWorld()
	w.event(5, 1, 7, recv, 80, 1000)
	w.Settle(w.now + forgetAfter*settle)
	if len(w.got) != 0 || len(w.sockets) != 0 || len(w.open) != 0 {
		t.Errorf("%d visits, %d sockets, %d open", len(w.got), len(w.sockets), len(w.open))
	}
}

func TestASocketOfAnotherProcessIsAnotherSocket(t *testing.T) {
	w := newWorld()
	w.event(5, 1, 7, recv, 80, 1000)
	w.event(5, 1, 7, send, 80, 1000)
	w.event(5, 3, 7, recv, 80, 1000) // whose port 80 nobody listens on: an answer without a call
	if len(w.got) != 1 || len(w.settled()[2]) != 0 {
		t.Errorf("%+v", w.got)
	}
}

// Whatever comes, in whatever order: ids are unique, parents begin before their
// children, memory is bounded and everything that ended is emitted once.
func TestVisitsAreSoundWhateverComes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		port := rapid.SampledFrom([]int{80, 90, 1000, 1001, 2000})
		for range rapid.IntRange(0, 200).Draw(t, "events") {
			w.event(rapid.Int64Range(-50, 50).Draw(t, "after"), rapid.Uint32Range(1, 3).Draw(t, "process"), rapid.Uint32Range(1, 3).Draw(t, "thread"),
				rapid.Bool().Draw(t, "sent"), port.Draw(t, "local"), port.Draw(t, "remote"))
			if rapid.IntRange(0, 20).Draw(t, "settle") == 0 {
				w.Settle(w.now + rapid.Int64Range(0, 2*settle).Draw(t, "silent"))
			}
		}
		w.Settle(w.now + 1000*forgetAfter*settle)
		seen := map[[8]byte]bool{}
		for _, v := range w.got {
			if seen[v.SpanID] || v.SpanID == [8]byte{} || v.TraceID == [16]byte{} || v.SpanID == v.Parent || v.End < v.Start {
				t.Fatalf("%+v", v)
			}
			seen[v.SpanID] = true
		}
		if len(w.sockets) != 0 || len(w.open) != 0 {
			t.Fatalf("%d sockets, %d processes with open requests", len(w.sockets), len(w.open))
		}
	})
}

func TestTheSocketsThatAreFollowedAreBounded(t *testing.T) {
	w := newWorld()
	for i := range maxSockets * 5 / 4 {
		e := Event{Time: int64(i), Process: 1, Thread: 1, Bytes: 1, Local: at(80), Remote: netip.AddrPortFrom(netip.MustParseAddr(fmt.Sprintf("10.0.%d.%d", i>>8&255, i&255)), uint16(i>>16+1))}
		w.Add(0, &e)
	}
	if len(w.sockets) > maxSockets || len(w.open[1]) > maxSockets {
		t.Errorf("%d sockets, %d open", len(w.sockets), len(w.open[1]))
	}
}

func FuzzAnEventIsReadOrRefused(f *testing.F) {
	good := make([]byte, eventBytes)
	good[16], good[22] = 1, inet4
	f.Add(good)
	f.Add(good[:10])
	f.Fuzz(func(t *testing.T, b []byte) {
		if e, err := parse(b); err == nil && (e.Bytes <= 0 || !e.Local.Addr().IsValid() || !e.Remote.Addr().IsValid()) {
			t.Errorf("%+v", e)
		}
	})
}

func FuzzATableOfSocketsIsRead(f *testing.F) {
	f.Add([]byte("  sl  local_address rem_address   st\n   0: 0100007F:0050 00000000:0000 0A 0\n   1: 0100007F:1F90 00000000:0000 01 0\n"))
	f.Fuzz(func(_ *testing.T, b []byte) { listening(b, map[uint16]bool{}) })
}

func TestPortsThatAreListenedOnAreRead(t *testing.T) {
	open := map[uint16]bool{}
	listening([]byte("  sl  local_address rem_address   st\n   0: 0100007F:0050 00000000:0000 0A 0\n   1: 0100007F:1F90 00000000:0000 01 0\n junk"), open)
	if len(open) != 1 || !open[80] {
		t.Errorf("%v", open)
	}
}
