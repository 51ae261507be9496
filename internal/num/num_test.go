package num_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab/internal/num"
)

type state struct {
	A float64   `json:"a"`
	B []float64 `json:"b"`
}

func TestSealedFloatsComeBackWithTheSameBits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := state{A: rapid.Float64().Draw(t, "a"), B: rapid.SliceOf(rapid.Float64()).Draw(t, "b")}
		b, err := num.Seal("k/1", want)
		if err != nil {
			t.Fatal(err)
		}
		var got state
		if err := num.Unseal("k/1", b, &got); err != nil {
			t.Fatal(err)
		}
		if math.Float64bits(got.A) != math.Float64bits(want.A) || !slices.Equal(got.B, want.B) {
			t.Fatalf("%v, want %v", got, want)
		}
	})
}

func TestAnyDamageIsRefusedAndChangesNothing(t *testing.T) {
	b, err := num.Seal("k/1", state{A: 1.5, B: []float64{1, 2}})
	if err != nil {
		t.Fatal(err)
	}
	got := state{A: 7}
	for i := range b {
		for bit := range 8 {
			flipped := slices.Clone(b)
			flipped[i] ^= 1 << bit
			if err := num.Unseal("k/1", flipped, &got); !errors.Is(err, num.ErrSeal) {
				t.Fatalf("byte %d bit %d: %v", i, bit, err)
			}
		}
		if err := num.Unseal("k/1", b[:i], &got); !errors.Is(err, num.ErrSeal) {
			t.Fatalf("cut at %d: %v", i, err)
		}
	}
	if err := num.Unseal("k/2", b, &got); !errors.Is(err, num.ErrSeal) {
		t.Fatalf("another kind: %v", err)
	}
	if got.A != 7 {
		t.Errorf("changed to %v", got)
	}
}

func TestWhatIsNotANumberIsNotSealed(t *testing.T) {
	if b, err := num.Seal("k/1", state{A: math.NaN()}); err == nil {
		t.Errorf("%s", b)
	}
}

// slow is the isotonic regression by its max-min formula,
// m(i) = max over s <= i of min over e >= i of mean(y[s..e]).
func slow(y, w []float64) []float64 {
	out := make([]float64, len(y))
	for i := range y {
		out[i] = math.Inf(-1)
		for s := 0; s <= i; s++ {
			least := math.Inf(1)
			for e := i; e < len(y); e++ {
				sum, weight := 0.0, 0.0
				for k := s; k <= e; k++ {
					sum += w[k] * y[k]
					weight += w[k]
				}
				least = min(least, sum/weight)
			}
			out[i] = max(out[i], least)
		}
	}
	return out
}

func TestIsotonicIsTheMaxMinFormula(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 12).Draw(t, "n")
		y := rapid.SliceOfN(rapid.Float64Range(-10, 10), n, n).Draw(t, "y")
		w := rapid.SliceOfN(rapid.Float64Range(0.1, 5), n, n).Draw(t, "w")
		want := slow(y, w)
		got := slices.Clone(y)
		num.Isotonic(got, w, nil)
		for i := range got {
			if math.Abs(got[i]-want[i]) > 1e-9 {
				t.Fatalf("%v, want %v", got, want)
			}
		}
	})
}

func TestIsotonicKeepsTheOrderOfBands(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 30).Draw(t, "n")
		low := rapid.SliceOfN(rapid.Float64Range(-10, 10), n, n).Draw(t, "low")
		w := rapid.SliceOfN(rapid.Float64Range(0.1, 5), n, n).Draw(t, "w")
		high := slices.Clone(low)
		for i := range high {
			high[i] += rapid.Float64Range(0, 3).Draw(t, "width")
		}
		num.Isotonic(low, w, nil)
		num.Isotonic(high, w, nil)
		for i := range low {
			if low[i] > high[i]+1e-9 {
				t.Fatalf("crossed at %d: %v > %v", i, low[i], high[i])
			}
		}
	})
}
