package jobs

import (
	"errors"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/speculation"
)

func TestAnAttemptOnASilentHostIsTriedElsewhereOnlyWhenItsLeaseHasEndedForSure(t *testing.T) {
	b := newBench(t, config(), "a", "b")
	b.m.Candidates([]string{"a"})
	b.submit(batch("j", 1))
	b.tick(time.Second)
	b.report("a", running("j", "t0", 1, .5)) // received now, and answered
	b.tick(0)
	heard := b.now
	b.m.Candidates([]string{"b"})
	for b.task("j", "t0").Host == "a" {
		b.report("b")
		b.tick(time.Second)
		if b.now.Sub(heard) > time.Hour {
			t.Fatal("it is never tried elsewhere")
		}
	}
	// 30 s, a tenth, and 5 s; then the back-off
	if d := b.now.Sub(heard); d != 39*time.Second {
		t.Fatalf("tried elsewhere after %v", d)
	}
}

func TestANewManagerCountsTheLeasesFromItsOwnStart(t *testing.T) {
	b := newBench(t, config(), "a", "b")
	b.m.Candidates([]string{"a"})
	b.submit(batch("j", 1))
	b.tick(time.Second)
	b.now = b.now.Add(time.Minute)
	b.config.Lease, b.config.HostTimeout = 10*time.Second, 5*time.Second // shorter than the one that was promised
	b.restart()
	made := b.now
	b.m.Candidates([]string{"b"})
	for b.task("j", "t0").Host == "a" {
		b.report("b")
		b.tick(time.Second)
	}
	if d := b.now.Sub(made); d != 39*time.Second {
		t.Fatalf("tried elsewhere after %v", d)
	}
}

func TestANewLifeOfAHostEndsItsAttempts(t *testing.T) {
	b := newBench(t, config(), "a", "b")
	b.m.Candidates([]string{"a"})
	b.submit(batch("j", 2))
	b.tick(time.Second)
	b.report("a", running("j", "t0", 1, .5), running("j", "t1", 1, .5))
	b.tick(time.Second)
	b.life["a"], b.number["a"] = 2, 0
	b.m.Candidates([]string{"b"})
	b.report("a", exited("j", "t1", 1, 0), running("j", "t0", 1, .5)) // it knows how one ended, and cannot run the other
	b.report("b")
	b.tick(time.Second)
	b.wants("j", "t1", "done", "a")
	b.tick(time.Second)
	b.wants("j", "t0", "placed", "b")
}

func TestAReportOfAFormerLifeOrAnOlderOneChangesNothing(t *testing.T) {
	b := newBench(t, config(), "a")
	b.submit(batch("j", 1))
	b.tick(time.Second)
	b.life["a"] = 3
	b.report("a")
	b.tick(time.Second)
	b.tick(time.Second)
	b.wants("j", "t0", "placed", "a") // the second attempt
	for _, r := range []speculation.Machine{{Life: 1, Report: 900}, {Life: 3, Report: b.number["a"]}} {
		r.Host, r.Pool, r.Attempts = "a", "batch", []speculation.Attempt{exited("j", "t0", 2, 0)}
		if err := b.m.Machine(b.now, &r); !errors.Is(err, trimtab.ErrStale) {
			t.Fatalf("report %d of life %d: %v", r.Report, r.Life, err)
		}
	}
	b.wants("j", "t0", "placed", "a")
}

func TestAnAttemptThatIsToEndEndsWhenItsHostCarriedTheListOutAndKnowsNothingOfIt(t *testing.T) {
	b := newBench(t, config(), "a", "b")
	b.m.Candidates([]string{"a"})
	b.submit(batch("j", 1))
	b.tick(time.Second)
	before := b.lists["a"]
	b.report("b")
	if err := b.grant("j", "t0", "b"); err != nil {
		t.Fatal(err)
	}
	b.tick(time.Second)
	after := b.lists["a"]
	b.lists["a"] = before // it has not seen the newer one: the first is still on its way
	b.report("a")
	b.tick(time.Second)
	if p := b.listed("b", "t0"); p != nil {
		t.Fatalf("b starts %+v, and a may, too", p)
	}
	b.lists["a"] = after
	b.report("a")
	b.tick(time.Second)
	if p := b.listed("b", "t0"); p == nil {
		t.Fatal("b does not start it")
	}
}

func TestAHostThatDoesNotEndAnAttemptIsRenewedNoMore(t *testing.T) {
	b := newBench(t, config(), "a", "b")
	b.m.Candidates([]string{"a"})
	b.submit(batch("j", 2))
	b.tick(time.Second)
	told := []speculation.Attempt{running("j", "t0", 1, .1), running("j", "t1", 1, .1)}
	hosts := map[string][]speculation.Attempt{"a": told, "b": nil}
	b.idle(5*time.Second, hosts)
	if err := b.grant("j", "t0", "b"); err != nil {
		t.Fatal(err)
	}
	b.idle(5*time.Minute-5*time.Second, hosts)
	if p := b.listed("a", "t0"); p == nil || p.Kill == "" {
		t.Fatalf("a is told %+v", p)
	}
	b.idle(5*time.Second, hosts)
	if p := b.listed("a", "t0"); p != nil {
		t.Fatalf("its lease is renewed: %+v", p)
	}
	b.idle(25*time.Second, hosts) // the report that was answered last came 10 s before that
	if p := b.listed("b", "t0"); p != nil {
		t.Fatal("it starts elsewhere before its lease has ended")
	}
	b.idle(5*time.Second, hosts)
	if p := b.listed("b", "t0"); p == nil || p.Class != speculation.RegularTask {
		t.Fatalf("b is told %+v", p)
	}
	b.wants("j", "t1", "running", "a") // the other goes on
}

func TestEveryReportWithAttemptsIsAnsweredAndAnIdleHostIsNot(t *testing.T) {
	b := newBench(t, config(), "a", "b")
	b.m.Candidates([]string{"a"})
	b.submit(batch("j", 1))
	b.tick(time.Second)
	for range 3 {
		b.report("a", running("j", "t0", 1, .5))
		b.report("b")
		out := b.tick(time.Second)
		if len(out.Placements) != 1 || out.Placements[0].Host != "a" || out.Placements[0].Report != b.number["a"] || len(out.Placements[0].Tasks) != 1 {
			t.Fatalf("%+v", out.Placements)
		}
	}
	b.report("b", attemptAt("old", "t0", 4, speculation.AttemptRunning)) // nobody's: it is to be killed
	out := b.tick(time.Second)
	if len(out.Placements) != 1 || out.Placements[0].Host != "b" || len(out.Placements[0].Tasks) != 0 {
		t.Fatalf("%+v", out.Placements)
	}
}

func TestAnotherManagerOfTheSameEpochHasHigherSequences(t *testing.T) {
	b := newBench(t, config(), "a")
	b.submit(batch("j", 1))
	b.tick(time.Second)
	first := b.lists["a"]
	b.config.Epoch--
	b.restart()
	b.report("a")
	b.tick(time.Second)
	if p := b.lists["a"]; p.Epoch != first.Epoch || p.Sequence <= first.Sequence {
		t.Fatalf("list %d of epoch %d after %d of %d", p.Sequence, p.Epoch, first.Sequence, first.Epoch)
	}
}

func TestWhatAReplacedManagerStillStoresMakesNothingRunTwice(t *testing.T) {
	b := newBench(t, config(), "a", "b")
	b.m.Candidates([]string{"a"})
	b.submit(batch("j", 1))
	b.tick(time.Second)
	old, oldClient := b.m, b.client
	b.restart()
	hosts := map[string][]speculation.Attempt{"a": {running("j", "t0", 1, .5)}, "b": nil}
	b.idle(time.Minute, hosts)
	old.Candidates([]string{"b"}) // it hears b alone, and holds that a is silent
	if err := old.Machine(b.now, &speculation.Machine{Host: "b", Pool: "batch", Life: 1, Report: 900}); err != nil {
		t.Fatal(err)
	}
	_ = oldClient.put(old.Tick(b.now).Store, 1)
	_ = oldClient.put(old.Tick(b.now.Add(time.Second)).Store, 1)
	b.restart()
	b.idle(10*time.Second, hosts)
	b.wants("j", "t0", "running", "a")
}
