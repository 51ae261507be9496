package guard

import (
	"math"
	"slices"
)

// Share divides room among asks, both in the resource's unit. If all fit, each gets its ask;
// otherwise whole units in proportion, the largest remainders first, ties in order. No share
// exceeds its ask, and the sum never exceeds room.
func Share(asks []float64, room, unit float64) []float64 {
	got := make([]float64, len(asks))
	sum := 0.0
	for _, a := range asks {
		sum += a
	}
	if sum <= room+grain*unit {
		copy(got, asks)
		return got
	}
	if room < unit*(1-grain) {
		return got
	}
	left := int(math.Floor(room/unit + grain))
	order := make([]int, len(asks))
	remainder := make([]float64, len(asks))
	whole := make([]int, len(asks))
	for i, a := range asks {
		order[i] = i
		exact := math.Min(room*(a/sum), a) / unit
		whole[i] = int(math.Floor(exact + grain))
		remainder[i] = exact - float64(whole[i])
		left -= whole[i]
	}
	slices.SortStableFunc(order, func(i, j int) int {
		switch {
		case remainder[i] > remainder[j]:
			return -1
		case remainder[i] < remainder[j]:
			return 1
		}
		return 0
	})
	for _, i := range order {
		if left > 0 && float64(whole[i]+1)*unit <= asks[i]+grain*unit {
			whole[i]++
			left--
		}
	}
	for i := range got {
		got[i] = math.Min(float64(whole[i])*unit, asks[i])
	}
	return got
}
