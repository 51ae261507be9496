package jobs

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestTheHeapGivesWhatSortingGives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOf(rapid.IntRange(0, 20)).Draw(t, "values")
		h := heap[int]{before: func(a, b int) bool { return a < b }}
		for _, v := range values {
			h.push(v)
		}
		slices.Sort(values)
		for _, v := range values {
			if got := h.pop(); got != v {
				t.Fatalf("got %d, want %d", got, v)
			}
		}
	})
}

func TestTheMedianIsThatOfTheNewestDurationsSorted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var d durations
		values := rapid.SliceOfN(rapid.Int64Range(0, 50), 1, 400).Draw(t, "values")
		for i, v := range values {
			d.add(time.Duration(v))
			all := slices.Sorted(slices.Values(values[max(0, i+1-keptDurations) : i+1]))
			if want := all[len(all)/2]; int64(d.median()) != want {
				t.Fatalf("after %d the median is %d, want %d", i+1, d.median(), want)
			}
		}
	})
}

// What the manager counts by itself is what counting everything anew gives, whatever hosts
// tell and people ask; and the task that is placed is the one that sorting all would place.
func TestThePlacedTaskIsTheFirstOfAllThatMayBe(tt *testing.T) {
	rapid.Check(tt, func(t *rapid.T) {
		c := config()
		c.Starts, c.Queued, c.Here, c.LostLimit, c.MaxBackoff = 1, 500, 500, 1000, 10*time.Second
		b := newBench(tt, c, "a")
		for step := range rapid.IntRange(1, 60).Draw(t, "steps") {
			if step < 5 {
				j := batch(string(rune('a'+step)), 1+step)
				j.Priority, j.Retries = rapid.IntRange(0, 2).Draw(t, "priority"), 100
				b.submit(j)
			}
			b.m.clock.advance(b.now.Add(time.Second))
			want := firstOfAll(b.m)
			before := len(b.m.hosts.byName["a"].live)
			b.tick(time.Second)
			switch live := b.m.hosts.byName["a"].live; {
			case want == nil && len(live) != before:
				t.Fatalf("%v is placed, and none may be", live[len(live)-1].id)
			case want != nil && (len(live) != before+1 || live[before].job != want.job || live[before].task != want.task):
				t.Fatalf("want task %d of %s", want.task, want.job.name)
			}
			if live := b.m.hosts.byName["a"].live; len(live) > 0 && rapid.Bool().Draw(t, "fails") {
				a := live[rapid.IntRange(0, len(live)-1).Draw(t, "which")]
				b.report("a", exited(a.id.Job, a.id.Task, a.id.Attempt, 1))
			} else {
				b.report("a")
			}
		}
	})
}

// firstOfAll looks at all tasks.
func firstOfAll(m *Manager) *place {
	var best *place
	for _, j := range m.jobs.byName {
		for i := range j.tasks {
			if t := &j.tasks[i]; t.status != waiting || t.next > m.clock.now {
				continue
			}
			if best == nil || j.Priority > best.job.Priority || j.Priority == best.job.Priority && (j.serial < best.job.serial || j == best.job && int32(i) < best.task) {
				best = &place{j, int32(i)}
			}
		}
	}
	return best
}
