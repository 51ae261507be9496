package limiter

import (
	"math"
	"testing"
	"time"
)

// at is a sample that ended then.
func at(to, took time.Duration, under int) Sample {
	return Sample{From: to - took, To: to, Under: under}
}

func TestGradient2GrowsByAPartOfItsQueueWhileTimesStayAsTheyWere(t *testing.T) {
	g := newGradient2()
	g.update(0.010, 15)
	// 0.8*20 + 0.2*(1*20+4) = 20.8
	if math.Abs(g.now-20.8) > 1e-9 {
		t.Errorf("limit %v, want 20.8", g.now)
	}
	g.update(0.010, 9)
	if math.Abs(g.now-20.8) > 1e-9 {
		t.Errorf("limit %v: it moved though fewer than half were under way", g.now)
	}
}

func TestGradient2NeverTakesMoreThanHalfAndStaysWithinItsBounds(t *testing.T) {
	g := newGradient2()
	for range gradient2Warm {
		g.update(0.010, 1)
	}
	g.now = 100
	g.update(1, 100)
	// The base moved to 0.010+0.99*2/601: still far below half, so g is 0.5, 0.8*100+0.2*54.
	if math.Abs(g.now-90.8) > 1e-9 {
		t.Errorf("limit %v, want 90.8", g.now)
	}
	for range 200 {
		g.update(10, 200)
	}
	if g.Limit() < gradient2Least || g.Limit() > gradient2Most {
		t.Errorf("limit %d", g.Limit())
	}
}

func TestGradient2LooksOnceASecondAtTenSamplesOrMore(t *testing.T) {
	g := newGradient2()
	g.Learn(at(time.Millisecond, time.Millisecond, 20)) // the first window ends at once, with one
	for k := range 12 {
		g.Learn(at(time.Duration(k+1)*50*time.Millisecond, 10*time.Millisecond, 20))
	}
	if g.Limit() != gradient2Least || g.seen != 0 {
		t.Fatalf("limit %d after %d windows, want none yet", g.Limit(), g.seen)
	}
	g.Learn(at(1100*time.Millisecond, 10*time.Millisecond, 20))
	if g.seen != 1 || g.now <= gradient2Least {
		t.Errorf("limit %v after %d windows, want more after one", g.now, g.seen)
	}
}

func TestEnvoyMeasuresTheIdealFirstWithThreeUnderWay(t *testing.T) {
	e := newEnvoy()
	now := time.Duration(0)
	for range envoySamples {
		if e.Limit() != envoyLeast || e.ideal != 0 {
			t.Fatalf("limit %d, ideal %v before it is known", e.Limit(), e.ideal)
		}
		now += 10 * time.Millisecond
		e.Learn(at(now, 8*time.Millisecond, 1))
	}
	if math.Abs(e.ideal-0.008) > 1e-9 {
		t.Errorf("ideal %v, want 8 ms", e.ideal)
	}
	now += envoyWindow
	e.Learn(at(now, 8*time.Millisecond, 3))
	// g = 1.25, limit = 3.75 + sqrt(3.75) = 5.69
	if e.Limit() != 5 {
		t.Errorf("limit %d, want 5", e.Limit())
	}
}

func TestEnvoyMeasuresAnewAfterAMinuteAndWhenItIsAtItsLeastFiveTimes(t *testing.T) {
	e := &envoy{now: 100, ideal: 0.010, next: envoyIdealEvery}
	e.Learn(at(envoyIdealEvery+time.Second, 10*time.Millisecond, 1))
	if e.after == 0 || e.Limit() != envoyLeast {
		t.Errorf("limit %d after a minute, want it to be measured anew", e.Limit())
	}
	before := e.epoch
	e.Learn(Sample{From: before - 1, To: before + 1})
	if len(e.window) != 0 {
		t.Error("a request that began before counts")
	}
	e = &envoy{now: envoyLeast, ideal: 0.001, next: envoyIdealEvery}
	for k := range envoyTimesAtLeast {
		if e.after > 0 {
			t.Fatalf("measured anew after %d windows", k)
		}
		e.Learn(at(time.Duration(k+1)*time.Second, time.Second, 3))
	}
	if e.after != envoyLeast {
		t.Errorf("after %d windows at the least limit it was not measured anew", envoyTimesAtLeast)
	}
}

func TestEnvoyMovesByHalfOrTwiceAtMostAndStaysWithinItsBounds(t *testing.T) {
	for took, want := range map[float64]int{1: 57, 0.0001: 214} { // 50+sqrt(50), 200+sqrt(200)
		e := &envoy{now: 100, ideal: 0.010}
		e.update(took)
		if e.Limit() != want {
			t.Errorf("limit %d after %v s, want %d", e.Limit(), took, want)
		}
	}
	e := &envoy{now: 900, ideal: 0.010}
	e.update(0.0001)
	if e.Limit() != envoyMost {
		t.Errorf("limit %d, want %d", e.Limit(), envoyMost)
	}
}
