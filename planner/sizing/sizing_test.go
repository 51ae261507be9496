package sizing

import (
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/quantity"
)

// Whatever is told, the limit is a number within the bounds, and it is lowered only to what a learnt need
// and the present use leave room for.
func TestALimitIsNeverLoweredBelowUseAndNeedNorWhileTheNeedIsNotLearnt(t *testing.T) {
	now := time.Unix(1e9, 0)
	rapid.Check(t, func(r *rapid.T) {
		bytes := rapid.Float64Range(0, 1<<40)
		n := quantity.MemoryNeed{Use: bytes.Draw(r, "use"), Need: bytes.Draw(r, "need"), Kills: rapid.Float64Range(0, 3).Draw(r, "kills")}
		if rapid.Bool().Draw(r, "unlearnt") {
			n.Unlearnt = "x"
		}
		if rapid.Bool().Draw(r, "was short") {
			at := now.Add(time.Duration(rapid.IntRange(-60, 60).Draw(r, "ago")) * time.Second)
			n.Short = &at
		}
		b := Bounds{Min: rapid.Float64Range(1, 1<<30).Draw(r, "min"), Margin: rapid.Float64Range(0, 1).Draw(r, "margin")}
		b.Max = b.Min + bytes.Draw(r, "span")
		has := trimtab.Units(rapid.Float64Range(b.Min, b.Max).Draw(r, "has"))
		if !b.Valid() {
			r.Fatal("bounds")
		}
		s := b.Of(now, time.Time{}, &n, has)
		if !(s.Limit >= b.Min && s.Limit <= math.Max(b.Max, has.Value)) || s.Why == "" {
			r.Fatalf("%+v within %+v", s, b)
		}
		if s.Limit < has.Value && (n.Unlearnt != "" || s.Short || s.Limit < n.Use*(1+b.Margin)-1 || s.Limit < math.Min(n.Need*(1+b.Margin), b.Max)-1) {
			r.Fatalf("%+v from %v: %+v, %+v", s, has, n, b)
		}
		if s.Short && s.Limit < math.Min(grow*has.Value, b.Max) {
			r.Fatalf("it is short and gets %+v, from %v", s, has)
		}
	})
}

// A use that rises still does when the limit was just raised.
func TestALimitThatWasRaisedForAShortageStaysFor15Seconds(t *testing.T) {
	now, b := time.Unix(1e9, 0), Bounds{Min: 1, Max: 1e9}
	for ago, want := range map[time.Duration]float64{3 * time.Second: 120, recent + time.Second: 50} {
		at := now.Add(-ago)
		if s := b.Of(now, at.Add(time.Second), &quantity.MemoryNeed{Use: 40, Need: 50, Short: &at}, trimtab.Units(120)); s.Limit != want || s.Short {
			t.Errorf("%v after a shortage: %+v", ago, s)
		}
	}
}

func TestARaiseToTheMinimumIsNotSaidToBeNoFall(t *testing.T) {
	b := Bounds{Min: 300, Max: 1e9}
	if s := b.Of(time.Unix(1e9, 0), time.Time{}, &quantity.MemoryNeed{Use: 40, Need: 50, Unlearnt: "x"}, trimtab.Units(200)); s.Limit != 300 || strings.Contains(s.Why, "not lowered") {
		t.Errorf("%+v", s)
	}
}

func TestAShortageOfLongAgoOrOfAClockAheadDoesNotCount(t *testing.T) {
	now, b := time.Unix(1e9, 0), Bounds{Min: 1, Max: 1e9}
	for ago, want := range map[time.Duration]bool{0: true, recent: true, recent + time.Second: false, -time.Hour: false} {
		at := now.Add(-ago)
		if b.Of(now, at, &quantity.MemoryNeed{Short: &at}, trimtab.Units(100)).Short {
			t.Errorf("%v ago, before the limit was set", ago)
		}
		if got := b.Of(now, time.Time{}, &quantity.MemoryNeed{Short: &at}, trimtab.Units(100)).Short; got != want {
			t.Errorf("%v ago: %v", ago, got)
		}
	}
}
