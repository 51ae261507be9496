package placed

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/speculation"
)

// event is one thing that happened to the host.
type event struct {
	kind string // sent, list, start, end, refuse
	at   time.Duration
	id   speculation.AttemptID
	list *speculation.Placements
	n    uint64
	// until is that of a list that counted.
	until time.Duration
}

// oracle knows all that ever happened, and finds every answer by reading it from the
// beginning.
type oracle struct{ log []event }

func (o *oracle) note(e event) { o.log = append(o.log, e) }

// counted are the lists that counted so far.
func (o *oracle) counted() (lists []event) {
	for _, e := range o.log {
		if e.kind == "list" {
			lists = append(lists, e)
		}
	}
	return lists
}

// counts says until when the tasks of a list may run, if it counts.
func (o *oracle) counts(now time.Duration, p *speculation.Placements) (time.Duration, bool) {
	if p.Life != 7 || p.Pool != "p" || p.Host != "h" {
		return 0, false
	}
	for _, e := range o.counted() {
		old := [3]uint64{e.list.Epoch, e.list.Sequence, e.list.Report}
		if slices.Compare([]uint64{p.Epoch, p.Sequence, p.Report}, old[:]) <= 0 {
			return 0, false
		}
	}
	for _, e := range o.log {
		if e.kind == "sent" && e.n == p.Report {
			until := e.at + min(p.Lease.Duration(), time.Minute)
			return until, now < until
		}
	}
	return 0, false
}

// state is how an attempt stands, "" where the host does not know it, and until when.
func (o *oracle) state(id speculation.AttemptID) (state string, until time.Duration) {
	for i, e := range o.log {
		switch {
		case e.id == id && (e.kind == "start" && state == "queued" || e.kind == "end" && state == "running" || e.kind == "refuse" && state == "queued"):
			state = map[string]string{"start": "running", "end": "ended", "refuse": "refused"}[e.kind]
		case e.kind == "list":
			state, until = (&oracle{o.log[:i]}).after(id, e, state, until)
		}
	}
	return state, until
}

// after is the state of an attempt after a list; o has what was before.
func (o *oracle) after(id speculation.AttemptID, e event, state string, until time.Duration) (string, time.Duration) {
	at := slices.IndexFunc(e.list.Tasks, func(p speculation.Placement) bool { return p.AttemptID == id })
	switch {
	case at < 0 && state == "running":
		return state, until
	case at < 0:
		return "", 0
	}
	kill := e.list.Tasks[at].Kill != ""
	switch {
	case state == "" && (kill || o.hinders(id, e.list)):
		return "refused", e.until
	case state == "":
		return "queued", e.until
	case kill && state == "queued":
		return "refused", until
	case !kill && (state == "queued" || state == "running"):
		return state, max(until, e.until)
	}
	return state, until
}

// hinders reports whether an attempt that is not known must not be started: another of
// its task has not ended, or one as high was ever listed.
func (o *oracle) hinders(id speculation.AttemptID, list *speculation.Placements) bool {
	for n := 1; n <= maxTried; n++ {
		other := speculation.AttemptID{Job: id.Job, Task: id.Task, Attempt: n}
		if n == id.Attempt {
			continue
		}
		state, _ := o.state(other)
		// What waits and is to end, or is not listed any more, is refused or gone first.
		stays := slices.ContainsFunc(list.Tasks, func(p speculation.Placement) bool { return p.AttemptID == other && p.Kill == "" })
		if state == "running" || state == "queued" && stays {
			return true
		}
	}
	for _, e := range o.counted() {
		for _, p := range e.list.Tasks {
			if p.Job == id.Job && p.Task == id.Task && p.Attempt >= id.Attempt {
				return true
			}
		}
	}
	// In the list itself, those before it were known first.
	for _, p := range list.Tasks {
		if p.AttemptID == id {
			break
		}
		if p.Job == id.Job && p.Task == id.Task && p.Attempt >= id.Attempt {
			return true
		}
	}
	return false
}

const maxTried = 4

// all are the attempts that there can be.
func all() (ids []speculation.AttemptID) {
	for _, t := range []string{"a", "b", "c"} {
		for n := 1; n <= maxTried; n++ {
			ids = append(ids, speculation.AttemptID{Job: "j", Task: t, Attempt: n})
		}
	}
	return ids
}

// drawList is a list as a planner, a former planner or a lying one might send it.
func drawList(t *rapid.T, reports, epoch, sequence uint64) *speculation.Placements {
	p := &speculation.Placements{Pool: "p", Host: "h", Life: 7, Epoch: epoch, Sequence: sequence + 1,
		Report: max(1, reports-min(reports, rapid.Uint64Range(0, 3).Draw(t, "reports ago"))), Lease: trimtab.Seconds(rapid.IntRange(1, 90).Draw(t, "lease"))}
	switch rapid.IntRange(0, 15).Draw(t, "kind of list") {
	case 0:
		p.Life = 6
	case 1:
		p.Host = "other"
	case 2:
		p.Report = reports + 1
	case 3, 4: // a former planner, or the next
		p.Epoch, p.Sequence = rapid.Uint64Range(1, epoch+1).Draw(t, "epoch"), rapid.Uint64Range(0, 12).Draw(t, "sequence")
	case 5:
		p.Sequence = sequence
	}
	live := map[string]bool{}
	for _, id := range rapid.Permutation(all()).Draw(t, "order") {
		if rapid.IntRange(0, 2).Draw(t, "listed") > 0 {
			continue
		}
		one := speculation.Placement{AttemptID: id, Class: rapid.SampledFrom([]speculation.TaskClass{speculation.OversubscribedTask, speculation.OversubscribedTask, speculation.RegularTask}).Draw(t, "class")}
		if live[id.Task] || rapid.IntRange(0, 4).Draw(t, "kill") == 0 {
			one.Kill = "no longer needed"
		} else {
			live[id.Task] = true
		}
		p.Tasks = append(p.Tasks, one)
	}
	return p
}

// pair is the ledger and the oracle beside it.
type pair struct {
	*rapid.T
	l       *Ledger
	o       oracle
	now     time.Duration
	reports uint64
	// queued has how often each attempt was to be started.
	queued map[speculation.AttemptID]int
}

func TestTheLedgerDoesWhatReadingTheWholeHistorySays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, err := New(Config{Pool: "p", Host: "h", Life: 7, MaxLease: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		w := &pair{T: t, l: l, queued: map[speculation.AttemptID]int{}}
		w.report()
		for range rapid.IntRange(1, 40).Draw(t, "events") {
			w.now += time.Duration(rapid.IntRange(0, 12).Draw(t, "pass")) * time.Second
			switch rapid.IntRange(0, 5).Draw(t, "event") {
			case 0:
				w.report()
			case 1, 2:
				epoch, sequence := l.Newest()
				w.take(drawList(t, w.reports, max(1, epoch), sequence))
			case 3:
				w.expire()
			default:
				w.turn(w.one())
			}
			w.compare()
		}
	})
}

func (w *pair) report() {
	n := w.l.Report(w.now)
	if w.reports++; n != w.reports {
		w.Fatalf("report %d, want %d", n, w.reports)
	}
	w.o.note(event{kind: "sent", at: w.now, n: n})
}

// take gives a list to both, and compares the orders.
func (w *pair) take(p *speculation.Placements) {
	until, counts := w.o.counts(w.now, p)
	before := w.states()
	orders, err := w.l.Take(w.now, p)
	if counts != (err == nil) {
		w.Fatalf("counts %v: %v", counts, err)
	}
	if !counts {
		if !reflect.DeepEqual(orders, Orders{}) {
			w.Fatalf("%+v of a list that does not count", orders)
		}
		return
	}
	w.o.note(event{kind: "list", at: w.now, list: p, until: until})
	after := w.states()
	want := Orders{}
	for _, id := range all() {
		at := slices.IndexFunc(p.Tasks, func(p speculation.Placement) bool { return p.AttemptID == id })
		gone := at < 0 || p.Tasks[at].Kill != ""
		if before[id] != "" && after[id] == "" {
			want.Forget = append(want.Forget, id)
		}
		if before[id] == "running" && gone {
			want.Kill = append(want.Kill, Kill{ID: id})
		}
		if before[id] == "queued" && gone {
			want.Cancel = append(want.Cancel, id)
		}
	}
	for _, one := range p.Tasks {
		if before[one.AttemptID] == "" && after[one.AttemptID] == "queued" {
			want.Queue = append(want.Queue, one)
			w.queued[one.AttemptID]++
		}
	}
	for i := range orders.Kill {
		if orders.Kill[i].Why == "" {
			w.Fatal("killed, and nobody says why")
		}
		orders.Kill[i].Why = ""
	}
	for _, r := range orders.Relabel {
		w.l.Relabelled(r.ID, r.Class)
	}
	orders.Relabel, orders.Renew = nil, nil // what they come to is compared with all else
	if !reflect.DeepEqual(orders, want) {
		w.Fatalf("%+v, want %+v", orders, want)
	}
	for _, one := range p.Tasks {
		if a, _ := w.l.Find(one.AttemptID); a.State < Ended && one.Kill == "" && a.Class != one.Class {
			w.Fatalf("%v is %s, want %s", one.AttemptID, a.Class, one.Class)
		}
	}
}

// one is an attempt to which something happens, mostly one that is here.
func (w *pair) one() speculation.AttemptID {
	var here []speculation.AttemptID
	for _, id := range all() {
		if state, _ := w.o.state(id); state == "queued" || state == "running" {
			here = append(here, id)
		}
	}
	if len(here) == 0 || rapid.IntRange(0, 9).Draw(w.T, "any") == 0 {
		here = all()
	}
	return rapid.SampledFrom(here).Draw(w.T, "attempt")
}

// turn lets something happen to an attempt.
func (w *pair) turn(id speculation.AttemptID) {
	state, until := w.o.state(id)
	switch rapid.IntRange(0, 3).Draw(w.T, "turn") {
	case 0, 1:
		may := state == "queued" && w.now < until
		if got := w.l.Start(w.now, id); got != may {
			w.Fatalf("start %v: %v, want %v", id, got, may)
		}
		if may {
			w.o.note(event{kind: "start", id: id})
		}
	case 2:
		w.l.End(id)
		w.o.note(event{kind: "end", id: id})
	case 3:
		if state == "queued" {
			w.l.Refuse(id, "the queue is full")
			w.o.note(event{kind: "refuse", id: id})
		}
	}
}

func (w *pair) expire() {
	want := Orders{}
	for _, id := range all() {
		switch state, until := w.o.state(id); {
		case w.now < until:
		case state == "running":
			want.Kill = append(want.Kill, Kill{ID: id})
		case state == "queued":
			want.Cancel = append(want.Cancel, id)
		}
	}
	got := w.l.Expire(w.now)
	for i := range got.Kill {
		got.Kill[i].Why = ""
	}
	if !reflect.DeepEqual(got, want) {
		w.Fatalf("%+v, want %+v", got, want)
	}
	for _, id := range want.Cancel {
		w.o.note(event{kind: "refuse", id: id})
	}
}

// states are those of all attempts, by the oracle.
func (w *pair) states() map[speculation.AttemptID]string {
	out := map[speculation.AttemptID]string{}
	for _, id := range all() {
		out[id], _ = w.o.state(id)
	}
	return out
}

// compare compares all that is known, and sees that nothing runs twice.
func (w *pair) compare() {
	names := map[State]string{Queued: "queued", Running: "running", Ended: "ended", Refused: "refused"}
	live := map[string]int{}
	for _, id := range all() {
		want, until := w.o.state(id)
		a, known := w.l.Find(id)
		got := ""
		if known {
			got = names[a.State]
		}
		if got != want || (want == "queued" || want == "running") && a.Until != until {
			w.Fatalf("%v is %q until %v, want %q until %v", id, got, a.Until, want, until)
		}
		if want == "running" || want == "queued" {
			if live[id.Task]++; live[id.Task] > 1 {
				w.Fatalf("two attempts at task %s", id.Task)
			}
		}
		if w.queued[id] > 1 {
			w.Fatalf("%v was to be started %d times", id, w.queued[id])
		}
	}
	if known := w.l.Attempts(); !slices.IsSortedFunc(known, func(a, b Attempt) int { return cmp.Compare(fmt.Sprint(a.AttemptID), fmt.Sprint(b.AttemptID)) }) {
		w.Fatalf("not in order: %v", known)
	}
}
